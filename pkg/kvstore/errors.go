package kvstore

import (
	"errors"
	"fmt"
)

// What a caller decides upon. All are found with [errors.Is] in what the methods of a
// [Client] return.
var (
	// ErrCompacted: the revision is no longer available. List again, and conclude nothing
	// from an unfinished list.
	ErrCompacted = errors.New("the revision has been compacted away")

	// ErrServerChanged: another etcd answers than the one that this session began with, or the
	// same one with another history. The session ended and its positions are void: connect
	// and list again.
	ErrServerChanged = errors.New("another etcd server answers at this endpoint")

	// ErrProtocol: an answer breaks the rules of etcd's protocol: a key that was not asked for, a
	// list out of order, an impossible revision. The session ended. What was learnt before stays.
	ErrProtocol = errors.New("the server breaks etcd's protocol")

	// ErrQuorumLost: too many linearizable reads in a row have failed. The session ended.
	ErrQuorumLost = errors.New("etcd does not answer linearizable reads")

	// ErrPermissionDenied: the user may not read this key or range, until the roles are changed.
	ErrPermissionDenied = errors.New("permission denied")

	// ErrUnauthenticated: etcd did not accept our credentials, until they are changed.
	ErrUnauthenticated = errors.New("authentication failed")

	// ErrUserNotFound: the user that is administered does not exist. It is not about the user
	// of the connection.
	ErrUserNotFound = errors.New("the etcd user does not exist")

	// ErrRoleNotFound: the role that is to be granted, or read, does not exist.
	ErrRoleNotFound = errors.New("the etcd role does not exist")

	// ErrProgressUnreliable: this version of etcd may report progress ahead of the events (etcd
	// issue 15220, mended in 3.4.25 and 3.5.8), or its version is not known.
	ErrProgressUnreliable = errors.New("this etcd version does not report progress reliably")

	// ErrNoSpace: etcd has reached its quota, and refuses everything but deletions until
	// somebody has made space and disarmed the alarm.
	ErrNoSpace = errors.New("etcd has no space left")

	// ErrLockLeaseExpired: a lock that an operation relies on is not held any more. Nothing was
	// done.
	ErrLockLeaseExpired = errors.New("the lock is no longer held: its lease has expired")

	// ErrLeaseNotFound: the lease that a key was to be tied to has ended. Nothing was done.
	ErrLeaseNotFound = errors.New("the lease does not exist")

	// ErrInvalidRequest: the request makes no sense to the server. Nothing was done, and the
	// same request fails again.
	ErrInvalidRequest = errors.New("the server takes the request for invalid")

	// ErrRetryRequest: the server has done nothing, and may do the same request later.
	ErrRetryRequest = errors.New("the server has not done the request")

	// ErrTooLarge: a request or its answer is larger than one side takes.
	ErrTooLarge = errors.New("the message is too large")

	// ErrClosed: the client or the stream has been closed by its owner.
	ErrClosed = errors.New("the client is closed")
)

// KeyError is an error of one operation. Its text ends with the hint.
type KeyError struct {
	// Op is the operation: "get", "list", "watch", "head", ...
	Op string
	// Key is the full path or prefix that the operation was about, or empty.
	Key string
	// Err is what went wrong.
	Err error
	// Hint says in a few words what to do about it (package hint); empty where that is not known.
	Hint string
}

// Error names the operation, the key, what went wrong, and what to do about it.
func (e *KeyError) Error() string {
	s := "kvstore " + e.Op
	if e.Key != "" {
		s = fmt.Sprintf("%s %q", s, e.Key)
	}
	s = fmt.Sprintf("%s: %v", s, e.Err)
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

// Unwrap returns Err.
func (e *KeyError) Unwrap() error { return e.Err }

// IsRefused reports whether a write was not made for what it is: its writer may not make it, it
// is too large, or it makes no sense. The same write fails again until somebody has changed the
// roles, or the limits.
func IsRefused(err error) bool {
	_, unfit := errors.AsType[unfitError](err)
	return unfit || errors.Is(err, ErrPermissionDenied) || errors.Is(err, ErrTooLarge) || errors.Is(err, ErrInvalidRequest)
}
