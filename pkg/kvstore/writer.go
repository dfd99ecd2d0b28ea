package kvstore

import "context"

// Writer is a [Client] that also writes, and all that holds for a Client holds for it.
//
// Every write is one transaction: it happens as a whole, under all the conditions given with
// it, or not at all. One that returns an error may have happened nevertheless, when the
// connection broke before the answer came; a caller that must know asks again.
//
// The package kvtest holds every statement below as a test.
type Writer interface {
	Client

	// Put writes one key. Without an option it always writes, and the key is tied to no lease.
	Put(ctx context.Context, key string, value []byte, opts ...Option) (Result, error)

	// Delete deletes one key. An absent key is no error: nothing is done then.
	Delete(ctx context.Context, key string, opts ...Option) (Result, error)

	// DeletePrefix deletes every key that begins with the prefix, at one revision. The prefix
	// ends in "/": anything else is an error, since it would be one whole key for [Client.List].
	DeletePrefix(ctx context.Context, prefix string, opts ...Option) (Result, error)

	// Update makes several writes in one transaction, at one revision: all of them or none.
	// There may be [MaxWrites] at most, and no key twice. Leased (of the puts) and Holding are
	// its only options. For the limits it is one operation, under the scope of the first key.
	Update(ctx context.Context, writes []Write, opts ...Option) (Result, error)

	// Lock waits until nobody else holds the lock of this path, in this process and in the
	// whole cluster, and holds it. Others may lock the same way (spec wire.md §5): the lock's
	// key is PATH/LEASE, the lease in hexadecimal, with an empty value; the oldest key holds
	// the lock. Within one process waiters are served in the order of their calls. It fails
	// with ctx, or after WriterOptions.LockWait.
	//
	// A lock is lost when its lease ends, for instance because this process was frozen. So
	// holding it proves nothing by itself: every write that relies on it carries [Holding].
	Lock(ctx context.Context, path string) (*Lock, error)

	// OnLeaseExpired makes f the observer of the keys that begin with prefix, in place of an
	// earlier one; nil removes it. When a lease has ended, f gets the keys that this writer had
	// tied to it and not deleted since, in order, so that their owner puts them back. It is
	// called once per lease and prefix, one call after another, and must not block.
	OnLeaseExpired(prefix string, f func(keys []string))

	// Owns reports, without a request, whether this is one of the leases of keys that this
	// writer keeps alive at present.
	Owns(lease int64) bool
}

// MaxWrites is how many writes an Update may have. etcd takes 128 parts in a transaction
// (--max-txn-ops), and parts that are transactions may have as many as the outer one leaves: 16
// of 110, of which each may have the two conditions of Kept. So an Update stays one request.
const MaxWrites = updateGroups * groupWrites

// updateFlat is how many writes an Update may have without groups.
const (
	updateFlat   = 126
	updateGroups = 16
	groupWrites  = updateFlat - updateGroups
)

// Write is one of the writes of an Update.
type Write struct {
	Key string
	// Value is what is put. A deletion has none.
	Value  []byte
	Delete bool
	// Unleased ties what is put to no lease, also in an Update that is [Leased].
	Unleased bool
	// Kept, unless nil, leaves a key alone that exists and is tied to no lease: the
	// write is not made then, in the same transaction in which the others are, and
	// Kept is called with the key before Update returns without an error.
	Kept func(KeyValue)
}

// takesLease reports whether a Leased Update ties the key to a lease.
func (w Write) takesLease() bool { return !w.Delete && !w.Unleased }

// Result is what a write did.
type Result struct {
	// Done: the write was made. It is false when a condition did not hold, or
	// when there was nothing to do: the key was as wanted already, or absent.
	Done bool
	// Met: all conditions held, whether there was something to do or not.
	Met bool
	// Deleted is how many keys were deleted.
	Deleted int64
	// At is the position of the write when it was made, and otherwise one at
	// which the condition did not hold.
	At Position
}

// Option is a condition of a write, or says how it is made. A condition that does not hold is
// no error, except that a lock is not held any more; an option that is not for this kind of
// write is one.
type Option interface{ apply(r *request) }

// ReadOption is an [Option] that reads take too.
type ReadOption interface {
	Option
	lock() *Lock
}

// SelectOption is a [ReadOption] that says which keys are selected.
type SelectOption interface {
	ReadOption
	selects()
}

// OneKey takes the prefix of a List, Recall or Watch for one whole key, and selects that key alone.
func OneKey() SelectOption { return oneKey{} }

type oneKey struct{}

func (oneKey) apply(r *request) { r.oneKey = true }
func (oneKey) lock() *Lock      { return nil }
func (oneKey) selects()         {}

// writeOption is an Option of writes alone.
type writeOption func(*request)

func (f writeOption) apply(r *request) { f(r) }

// request is what the options of one write amount to.
type request struct {
	leased     bool
	ifAbsent   bool
	ifChanged  bool
	ifRevision *int64      // of the key itself; nil: any
	ifValue    []byte      // of the key itself; nil: any
	ifOther    []Condition // of other keys
	holding    []*Lock
	oneKey     bool // which no write takes
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

// IfAbsent creates: nothing is written when the key exists, with whatever value.
// It is for Put alone.
func IfAbsent() Option { return writeOption(func(r *request) { r.ifAbsent = true }) }

// IfChanged writes nothing when the key has the value and the lease already. It reads first, so
// that an equal key costs a server no write; a difference costs two requests. It is for Put alone.
func IfChanged() Option { return writeOption(func(r *request) { r.ifChanged = true }) }

// IfRevision writes only while the key's last change is the one of this
// revision; 0: while the key is absent. It is not for DeletePrefix.
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
// [ErrLockLeaseExpired]. A nil lock is no condition. It may be given several times.
func Holding(l *Lock) ReadOption { return holding{l} }

type holding struct{ of *Lock }

func (h holding) apply(r *request) { r.holding = append(r.holding, h.of) }
func (h holding) lock() *Lock      { return h.of }

// HeldLocks are the locks that a read with these options relies on, for engines.
func HeldLocks(opts []ReadOption) []*Lock {
	var locks []*Lock
	for _, o := range opts {
		if l := o.lock(); l != nil {
			locks = append(locks, l)
		}
	}
	return locks
}
