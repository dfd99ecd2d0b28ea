package kvstore

import (
	"context"
	"time"
)

// Engine is one session with a server, of whatever kind: it reads as a [Client],
// makes transactions, and grants leases. [NewWriter] makes a [Writer] of it, with
// conditions, leased keys, locks and observers. The package kvtest tests the two
// together.
//
// Errors are those of a [Client]. Besides, a put with a lease that the server does
// not know is [ErrLeaseNotFound], and one of the others of errors.go tells that a
// request was not done; with any other error nobody knows.
type Engine interface {
	Client

	// Transact makes a transaction. It fails with [Transaction.Lost], as a
	// [KeyError], when that is an error.
	Transact(ctx context.Context, t Transaction) (TxnResult, Position, error)
	// WatchNow is [Client.Watch] without limits: whoever waits for a lock waits for
	// nothing else.
	WatchNow(ctx context.Context, key string, after Position) (Stream, error)
	Lessor
}

// Lessor grants leases. Its calls have deadlines of their own.
type Lessor interface {
	// Grant asks for a lease, and tells how long it lasts: it may be longer.
	Grant(ctx context.Context, ttl time.Duration) (id int64, lasts time.Duration, err error)
	// KeepAlive prolongs leases, one after another, and tells of each that was
	// answered whether it is alive.
	KeepAlive(ctx context.Context, ids []int64) (alive map[int64]bool, err error)
	// Revoke ends a lease and deletes its keys; one that has ended is no error. It
	// also serves a session that was closed.
	Revoke(ctx context.Context, id int64) error
}

// Session is one session with a server, as a [Durable] uses it. The sessions of the
// packages etcd and memory are some.
type Session interface {
	Writer
	// Run watches over the session until it is over, and returns why; onProbe is
	// given each linearizable read. It keeps leases alive.
	Run(ctx context.Context, onProbe func(Probe)) error
	// WaitConnected waits until Status().Connected is as wanted. It fails with the
	// context, and when the session has ended while a connection is wanted.
	WaitConnected(ctx context.Context, want bool) error
	// BootstrapComplete tells the session that its first sync is complete.
	BootstrapComplete()
	// End ends what is under way with this reason. [Client.Close] follows.
	End(why error)
}
