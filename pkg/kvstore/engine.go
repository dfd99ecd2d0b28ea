package kvstore

import (
	"context"
	"time"
)

// Engine is one session with a server of any kind: it reads as a [Client], makes transactions, and
// grants leases. [NewWriter] makes a [Writer] of it. Package kvtest tests the two together.
//
// Errors are those of a [Client]. A put with a lease that the server does not know fails with
// [ErrLeaseNotFound]. Some errors of errors.go are documented to mean that the server did not
// execute the request; with any other error it is unknown whether it did.
type Engine interface {
	Client

	// Transact makes a transaction. If [Transaction.Lost] returns an error, Transact
	// fails with it, as a [KeyError].
	Transact(ctx context.Context, t Transaction) (TxnResult, Position, error)
	// WatchNow is [Client.Watch] of [OneKey] without the rate limit, for locks.
	WatchNow(ctx context.Context, key string, after Position) (Stream, error)
	Lessor
}

// Lessor grants leases. Its calls have deadlines of their own.
type Lessor interface {
	// Grant asks for a lease, which may last longer than asked.
	Grant(ctx context.Context, ttl time.Duration) (id int64, lasts time.Duration, err error)
	// KeepAlive prolongs leases, and reports for each answered lease whether it is alive.
	KeepAlive(ctx context.Context, ids []int64) (alive map[int64]bool, err error)
	// Revoke ends a lease and deletes its keys. A lease that has already ended is no error.
	// Revoke also works after the session was closed.
	Revoke(ctx context.Context, id int64) error
}

// Session is one session with a server, as a [Durable] uses it.
type Session interface {
	Writer
	// Run probes the server and keeps leases alive until the session is over, and returns the
	// reason. It calls onProbe with each probe.
	Run(ctx context.Context, onProbe func(Probe)) error
	// WaitConnected waits until Status().Connected equals want. It fails with the context's
	// error, and also when the session has ended and want is true.
	WaitConnected(ctx context.Context, want bool) error
	// BootstrapBegins declares that a first sync begins, for example of another user of the session; a new session
	// begins in this state. BootstrapComplete declares it complete.
	BootstrapBegins()
	BootstrapComplete()
	// End ends all calls and streams with this reason. The caller then calls [Client.Close].
	End(why error)
}

// Transaction is one operation on the keys of a kvstore, for any engine.
type Transaction struct {
	// Op and Key name the operation in errors, metrics and traces.
	Op, Key string
	// Limited operations wait for the rate limit and for the limit of concurrent operations.
	Limited bool
	// Locks are the locks that must be held. The first parts of Else read their keys, in the
	// same order, to distinguish a lost lock from other conditions ([Transaction.Lost]).
	Locks []*Lock
	Txn
}

// Txn is the content of a transaction: all of Then when all conditions hold, otherwise all of
// Else. It is atomic, at one revision.
type Txn struct {
	If         []Condition
	Then, Else []TxnOp
}

// ConditionKind is the kind of test that a [Condition] makes on its key.
type ConditionKind uint8

const (
	// ValueIs: the key exists, with this value.
	ValueIs ConditionKind = iota
	// CreatedAt: the key was created at the revision Number; 0: the key is absent.
	CreatedAt
	// ChangedAt: the mod revision of the key is Number; 0: the key is absent.
	ChangedAt
	// LeaseIs: the key is tied to the lease Number; 0: the key has no lease or is absent.
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

// TxnOpKind is the kind of a [TxnOp].
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

// TxnOp is a part of a transaction. The parts are executed in order; a read sees the effects
// of the parts before it.
type TxnOp struct {
	Kind TxnOpKind
	// Key is the key, or the first of the range that ends before End.
	Key, End string
	Value    []byte // of a put
	Lease    int64  // of a put; 0 for none
	// With KeysOnly no values are read. Only keys with a create revision up to MaxCreated
	// are read; 0: all keys.
	KeysOnly   bool
	MaxCreated int64
	Txn        *Txn // of OpTxn
}

// TxnResult is the result of a transaction.
type TxnResult struct {
	// Succeeded: the conditions held.
	Succeeded bool
	// Parts are the results of the parts of the executed branch, Then or Else.
	Parts []PartResult
}

// PartResult is the result of one part of a transaction.
type PartResult struct {
	Kind    TxnOpKind
	Deleted int64      // of OpDelete: the number of keys
	Found   []Found    // of OpRead
	Txn     *TxnResult // of OpTxn
}

// Found is a key that a transaction has read.
type Found struct {
	KeyValue
	// Created is the revision at which the key was created.
	Created int64
}

// UnderLocks returns a transaction whose conditions require that all the locks are held, and whose
// Then is still empty. It ignores nil locks.
func UnderLocks(locks []*Lock) (t Transaction) {
	for _, l := range locks {
		if l != nil {
			t.Locks, t.If, t.Else = append(t.Locks, l), append(t.If, l.held()), append(t.Else, readKey(l.Key))
		}
	}
	return t
}

// Lost returns an error when the conditions did not hold because a lock is no longer held.
// Then an engine fails with this error.
func (t Transaction) Lost(res TxnResult) error {
	if res.Succeeded {
		return nil
	}
	for i, l := range t.Locks {
		if found := res.Parts[i].Found; len(found) == 0 || found[0].Created != l.Revision {
			return l.MarkLost()
		}
	}
	return nil
}

func readKey(key string) TxnOp { return TxnOp{Kind: OpRead, Key: key} }

// deletion deletes a key, or the range from key to before end.
func deletion(key, end string) TxnOp { return TxnOp{Kind: OpDelete, Key: key, End: end} }
