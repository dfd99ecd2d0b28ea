package kvstore

import "context"

// Writer is a [Client] that also writes. All statements about a Client also apply to it.
//
// Every write is one transaction: it is executed completely, under all its conditions, or not at
// all. A write that returns an error may have been executed nevertheless, when the connection
// broke before the answer arrived; a caller that must know reads the key.
//
// Package kvtest tests every statement below.
type Writer interface {
	Client

	// Put writes one key. Without options it always writes, and the key is not tied to a lease.
	Put(ctx context.Context, key string, value []byte, opts ...Option) (Result, error)

	// Delete deletes one key. An absent key is no error: then nothing is deleted.
	Delete(ctx context.Context, key string, opts ...Option) (Result, error)

	// DeletePrefix deletes every key that begins with the prefix, at one revision. The prefix
	// ends in "/": anything else is an error, since it would be one whole key for [Client.List].
	DeletePrefix(ctx context.Context, prefix string, opts ...Option) (Result, error)

	// Update makes several writes in one transaction, at one revision: all of them or none.
	// There may be at most [MaxWrites], and no key may occur twice. Its only options are Leased,
	// which affects the puts, and Holding. For the limits it is one operation, under the scope of the first key.
	Update(ctx context.Context, writes []Write, opts ...Option) (Result, error)

	// Lock waits until no other caller holds the lock of this path, in this process and in the
	// whole cluster, and then holds it. Other programs may lock in the same way (spec wire.md §5):
	// the lock's key is PATH/LEASE, the lease in hexadecimal, with an empty value; the oldest key
	// holds the lock. Within one process waiters are served in the order of their calls. Lock fails
	// with ctx, or after WriterOptions.LockWait.
	//
	// A lock is lost when its lease ends, for example because this process was frozen. So a [Lock]
	// by itself proves nothing: every write that relies on it needs [Holding].
	Lock(ctx context.Context, path string) (*Lock, error)

	// OnLeaseExpired makes f the observer of the keys that begin with prefix, in place of an
	// earlier one; nil removes it. When a lease has ended, f gets, in order, the keys that this
	// writer had tied to it and not deleted since, so that their owner can put them again. It is
	// called once per lease and prefix, one call after another, and must not block.
	OnLeaseExpired(prefix string, f func(keys []string))

	// Owns reports, without a request, whether this is one of the leases of keys that this
	// writer currently keeps alive.
	Owns(lease int64) bool
}

// MaxWrites is the maximum number of writes in an Update. etcd accepts 128 parts in a transaction
// (--max-txn-ops), and a nested transaction may have as many parts as the outer one leaves: so there
// are 16 groups of 110 writes, each of which may have the two conditions of Kept. So an Update stays one request.
const MaxWrites = updateGroups * groupWrites

// updateFlat is the maximum number of writes in an Update without groups.
const (
	updateFlat   = 126
	updateGroups = 16
	groupWrites  = updateFlat - updateGroups
)

// Write is one of the writes of an Update.
type Write struct {
	Key string
	// Value is the value of a put. A deletion has none.
	Value  []byte
	Delete bool
	// Unleased puts the key without a lease, also in an Update that is [Leased].
	Unleased bool
	// Kept, unless nil, keeps a key unchanged that exists and is not tied to a lease: this
	// write is not made then, while the same transaction makes the other writes, and
	// Kept is called with the key before Update returns without an error.
	Kept func(KeyValue)
	// Absent, unless nil, is called before Update returns without an error, if this write is a deletion and there was no
	// key: no event follows.
	Absent func()
}

// takesLease reports whether a Leased Update ties the key to a lease.
func (w Write) takesLease() bool { return !w.Delete && !w.Unleased }

// Result is the result of a write.
type Result struct {
	// Done: the write was made. It is false when a condition did not hold, or when there was
	// nothing to do: the key already had the value and the lease, or the key to delete was absent.
	Done bool
	// Met: all conditions held, whether there was something to do or not.
	Met bool
	// Deleted is the number of deleted keys.
	Deleted int64
	// At is the position of the write when it was made, and otherwise a position at
	// which the write was not needed or a condition did not hold.
	At Position
}

// Option is a condition of a write, or another property of it. A condition that does not hold is no
// error, except a lock that is no longer held. An option that this kind of write does not support is
// an error.
type Option interface{ apply(r *request) }

// ReadOption is an [Option] that reads also accept.
type ReadOption interface {
	Option
	lock() *Lock
}

// SelectOption is a [ReadOption] that changes which keys are selected.
type SelectOption interface {
	ReadOption
	selects()
}

// OneKey treats the prefix of a List, Recall or Watch as one whole key, and selects that key alone.
func OneKey() SelectOption { return oneKey{} }

type oneKey struct{}

func (oneKey) apply(r *request) { r.oneKey = true }
func (oneKey) lock() *Lock      { return nil }
func (oneKey) selects()         {}

// writeOption is an Option that only writes accept.
type writeOption func(*request)

func (f writeOption) apply(r *request) { f(r) }

// request has the options of one write together.
type request struct {
	leased     bool
	ifAbsent   bool
	ifChanged  bool
	ifRevision *int64      // of the key itself; nil: any
	ifValue    []byte      // of the key itself; nil: any
	ifOther    []Condition // of other keys
	holding    []*Lock
	oneKey     bool // no write accepts it
}

func requested(opts []Option) request {
	var r request
	for _, o := range opts {
		o.apply(&r)
	}
	return r
}

// Leased ties the key to a lease that lives as long as this writer. It is for Put and Update.
func Leased() Option { return writeOption(func(r *request) { r.leased = true }) }

// IfAbsent only creates: nothing is written when the key exists, with any value.
// It is for Put alone.
func IfAbsent() Option { return writeOption(func(r *request) { r.ifAbsent = true }) }

// IfChanged writes nothing when the key already has the value and the lease. It reads first, so an
// unchanged key costs the server no write, and a changed key costs two requests. It is for Put alone.
func IfChanged() Option { return writeOption(func(r *request) { r.ifChanged = true }) }

// IfRevision writes only while the key has this mod revision; 0: while the key is absent.
// It is not for DeletePrefix.
func IfRevision(rev int64) Option { return writeOption(func(r *request) { r.ifRevision = &rev }) }

// IfValue writes only while the key exists with this value. It is not for DeletePrefix.
func IfValue(value []byte) Option {
	return writeOption(func(r *request) { r.ifValue = append([]byte{}, value...) })
}

// IfOther writes only while another key exists with this value. It may be given several times.
func IfOther(key string, value []byte) Option {
	other := Condition{Kind: ValueIs, Key: key, Value: append([]byte{}, value...)}
	return writeOption(func(r *request) { r.ifOther = append(r.ifOther, other) })
}

// Holding writes, or reads, only while the lock is held; otherwise the error is
// [ErrLockLeaseExpired]. A nil lock adds no condition. It may be given several times.
func Holding(l *Lock) ReadOption { return holding{l} }

type holding struct{ of *Lock }

func (h holding) apply(r *request) { r.holding = append(r.holding, h.of) }
func (h holding) lock() *Lock      { return h.of }

// HeldLocks returns the locks on which a read with these options relies. It is for engines.
func HeldLocks(opts []ReadOption) []*Lock {
	var locks []*Lock
	for _, o := range opts {
		if l := o.lock(); l != nil {
			locks = append(locks, l)
		}
	}
	return locks
}
