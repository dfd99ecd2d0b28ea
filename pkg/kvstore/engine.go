package kvstore

import (
	"context"
	"time"
)

// Engine is one session with a server of any kind: it reads as a [Client], makes transactions, and
// grants leases. [NewWriter] makes a [Writer] of it. The package kvtest tests the two together.
//
// Errors are those of a [Client]. A put with a lease that the server does not know is
// [ErrLeaseNotFound]. The errors of errors.go that say so mean that a request was not done;
// with any other error that is not known.
type Engine interface {
	Client

	// Transact makes a transaction. It fails with [Transaction.Lost], as a
	// [KeyError], when that is an error.
	Transact(ctx context.Context, t Transaction) (TxnResult, Position, error)
	// WatchNow is [Client.Watch] of [OneKey] without limits of rate, for locks.
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

// Transaction is one operation on the keys of a kvstore, for whatever engine.
type Transaction struct {
	// Op and Key name the operation in errors, metrics and traces.
	Op, Key string
	// Limited operations wait for the limits of rate and of operations under way.
	Limited bool
	// Locks are those that must be held. Else reads their keys first, one after
	// another, to tell a lost lock from other conditions ([Transaction.Lost]).
	Locks []*Lock
	Txn
}

// Txn is what a transaction does: all of Then when all conditions hold, else all of
// Else. It happens as a whole, at one revision.
type Txn struct {
	If         []Condition
	Then, Else []TxnOp
}

// ConditionKind is what a [Condition] asks about its key.
type ConditionKind uint8

const (
	// ValueIs: the key exists, with the value.
	ValueIs ConditionKind = iota
	// CreatedAt: the key was created at the revision Number; 0: it is absent.
	CreatedAt
	// ChangedAt: the last change of the key is that of the revision Number; 0: it is absent.
	ChangedAt
	// LeaseIs: the key is tied to the lease Number; 0: to none, or it is absent.
	LeaseIs
	// Exists: the key exists.
	Exists
)

// Condition is a condition on one key.
type Condition struct {
	Kind   ConditionKind
	Key    string
	Value  []byte // of ValueIs
	Number int64  // of CreatedAt, ChangedAt and LeaseIs
}

// TxnOpKind is what a [TxnOp] does.
type TxnOpKind uint8

const (
	// OpRead reads the keys of a range.
	OpRead TxnOpKind = iota
	// OpPut writes one key.
	OpPut
	// OpDelete deletes the keys of a range.
	OpDelete
	// OpTxn is a transaction within the transaction.
	OpTxn
)

// TxnOp is a part of a transaction. The parts are done in their order; a read sees
// the parts before it.
type TxnOp struct {
	Kind TxnOpKind
	// Key is the key, or the first of the range that ends before End.
	Key, End string
	Value    []byte // of a put
	Lease    int64  // of a put; 0 for none
	// KeysOnly reads no values, and MaxCreated only keys that were created up to
	// that revision; 0: whenever.
	KeysOnly   bool
	MaxCreated int64
	Txn        *Txn // of OpTxn
}

// TxnResult is what a transaction has done.
type TxnResult struct {
	// Succeeded: the conditions held.
	Succeeded bool
	// Parts are the results of the parts of the branch that was taken.
	Parts []PartResult
}

// PartResult is the result of one part of a transaction.
type PartResult struct {
	Kind    TxnOpKind
	Deleted int64      // of OpDelete: how many keys
	Found   []Found    // of OpRead
	Txn     *TxnResult // of OpTxn
}

// Found is a key that a transaction has read.
type Found struct {
	KeyValue
	// Created is the revision at which the key was created.
	Created int64
}

// UnderLocks returns a transaction that does nothing yet, and that only while the
// locks are held; nil locks are none.
func UnderLocks(locks []*Lock) (t Transaction) {
	for _, l := range locks {
		if l != nil {
			t.Locks, t.If, t.Else = append(t.Locks, l), append(t.If, l.held()), append(t.Else, readKey(l.Key))
		}
	}
	return t
}

// Lost returns an error when a lock that is not held any more is why the conditions
// did not hold. An engine fails with it.
func (t Transaction) Lost(res TxnResult) error {
	if res.Succeeded {
		return nil
	}
	for i, l := range t.Locks {
		if found := res.Parts[i].Found; len(found) == 0 || found[0].Created != l.Revision {
			return l.NotHeld()
		}
	}
	return nil
}

func readKey(key string) TxnOp { return TxnOp{Kind: OpRead, Key: key} }

// deletion deletes a key, or the range before end.
func deletion(key, end string) TxnOp { return TxnOp{Kind: OpDelete, Key: key, End: end} }
