package kvstore

import (
	"errors"
	"fmt"
)

// Callers decide by these errors. The errors that the methods of a [Client] return match them
// with [errors.Is].
var (
	// ErrCompacted: the revision is no longer available. List again, and conclude nothing
	// from an unfinished list.
	ErrCompacted = errors.New("the revision has been compacted away")

	// ErrServerChanged: a different etcd answers than at the start of this session, or the same
	// etcd with another history. The session has ended and its positions are invalid: connect
	// and list again.
	ErrServerChanged = errors.New("another etcd server answers at this endpoint")

	// ErrProtocol: an answer breaks the rules of etcd's protocol: an unrequested key, a list out of
	// order, an impossible revision. The session has ended. Data that was read before stays valid.
	ErrProtocol = errors.New("the server breaks etcd's protocol")

	// ErrQuorumLost: too many linearizable reads in a row have failed. The session has ended.
	ErrQuorumLost = errors.New("etcd does not answer linearizable reads")

	// ErrPermissionDenied: the user has no right to this key or range, until its roles are changed.
	ErrPermissionDenied = errors.New("permission denied")

	// ErrUnauthenticated: etcd did not accept our credentials, until they are changed.
	ErrUnauthenticated = errors.New("authentication failed")

	// ErrUserNotFound: the user to administer does not exist. This error is never about the
	// user of the connection.
	ErrUserNotFound = errors.New("the etcd user does not exist")

	// ErrRoleNotFound: the role to grant, or to read, does not exist.
	ErrRoleNotFound = errors.New("the etcd role does not exist")

	// ErrProgressUnreliable: this version of etcd may report progress ahead of the events (etcd
	// issue 15220, fixed in 3.4.25 and 3.5.8), or its version is not known.
	ErrProgressUnreliable = errors.New("this etcd version does not report progress reliably")

	// ErrNoSpace: etcd has reached its quota, and refuses all writes except deletions until
	// an operator has made space and disarmed the alarm.
	ErrNoSpace = errors.New("etcd has no space left")

	// ErrLockLeaseExpired: the lock of an operation is no longer held. The operation was not
	// executed.
	ErrLockLeaseExpired = errors.New("the lock is no longer held: its lease has expired")

	// ErrLeaseNotFound: the lease for a key has ended. The operation was not executed.
	ErrLeaseNotFound = errors.New("the lease does not exist")

	// ErrInvalidRequest: the server considers the request invalid and did not execute it. The
	// same request fails again.
	ErrInvalidRequest = errors.New("the server takes the request for invalid")

	// ErrRetryRequest: the server did not execute the request. It may execute the same request later.
	ErrRetryRequest = errors.New("the server has not done the request")

	// ErrTooLarge: a request or its answer is larger than the limit of one side.
	ErrTooLarge = errors.New("the message is too large")

	// ErrClosed: the owner has closed the client or the stream.
	ErrClosed = errors.New("the client is closed")
)

// KeyError is an error of one operation. Its text ends with the hint.
type KeyError struct {
	// Op is the operation: "get", "list", "watch", "head", ...
	Op string
	// Key is the full path or prefix of the operation, or empty.
	Key string
	// Err is the cause.
	Err error
	// Hint is short advice about the error (package hint); empty when there is none.
	Hint string
}

// Error names the operation, the key, the cause, and the advice.
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

// IsRefused reports whether a write was not made because of the write itself: its writer has no
// right to make it, it is too large, or it is invalid. The same write fails again until the roles
// or the limits are changed.
func IsRefused(err error) bool {
	_, unfit := errors.AsType[unfitError](err)
	return unfit || errors.Is(err, ErrPermissionDenied) || errors.Is(err, ErrTooLarge) || errors.Is(err, ErrInvalidRequest)
}
