package kvstore

import (
	"context"
	"time"
)

// Engine is one session with a server of any kind: it reads as a [Client], makes transactions,
// and grants leases. [NewWriter] makes a [Writer] of it. The package kvtest tests the two
// together.
//
// Errors are those of a [Client]. A put with a lease that the server does not know is
// [ErrLeaseNotFound]. The errors of errors.go that say so mean that a request was not done;
// with any other error that is not known.
type Engine interface {
	Client

	// Transact makes a transaction. It fails with [Transaction.Lost], as a
	// [KeyError], when that is an error.
	Transact(ctx context.Context, t Transaction) (TxnResult, Position, error)
	// WatchNow is [Client.Watch] without limits of rate, for locks.
	WatchNow(ctx context.Context, key string, after Position) (Stream, error)
	Lessor
}

// Lessor grants leases. Its calls have deadlines of their own.
type Lessor interface {
	// Grant asks for a lease, which may last longer than asked.
	Grant(ctx context.Context, ttl time.Duration) (id int64, lasts time.Duration, err error)
	// KeepAlive prolongs leases, and reports of each that was answered whether it is alive.
	KeepAlive(ctx context.Context, ids []int64) (alive map[int64]bool, err error)
	// Revoke ends a lease and deletes its keys; one that has ended is no error. It
	// also serves a session that was closed.
	Revoke(ctx context.Context, id int64) error
}

// Session is one session with a server, as a [Durable] uses it.
type Session interface {
	Writer
	// Run probes the server and keeps leases alive until the session is over, and returns why;
	// onProbe is given each probe.
	Run(ctx context.Context, onProbe func(Probe)) error
	// WaitConnected waits until Status().Connected is as wanted. It fails with the
	// context, and when the session has ended while a connection is wanted.
	WaitConnected(ctx context.Context, want bool) error
	// BootstrapComplete tells the session that its first sync is complete.
	BootstrapComplete()
	// End ends what is under way with this reason. [Client.Close] follows.
	End(why error)
}
