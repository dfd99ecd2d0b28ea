package allocator

import (
	"context"
	"errors"

	"golang.org/x/time/rate"
)

// ErrIdentityNonExistent is the error of who needs an identity that does not
// exist, such as the release of a key that is not held.
var ErrIdentityNonExistent = errors.New("the identity does not exist")

// ErrTaken is the error of who uses an ID that belongs to another key.
var ErrTaken = errors.New("the ID belongs to another key")

// ErrIDInUse is the error of who would delete an ID that a node uses.
var ErrIDInUse = errors.New("a node uses the ID")

// Backend is what an [Allocator] needs of the shared store. All methods may be
// called by any number of goroutines; each ends with its context, and by
// deadlines of its own. An error of a write does not report whether it happened.
//
// A lock that is nil is no condition; otherwise the operation is done only while the lock is held,
// in one transaction, and the error is [kvstore.ErrLockLeaseExpired] when it is not.
type Backend interface {
	// AllocateID creates the mapping from the ID to the key. It reports false,
	// and changes nothing, when the ID is taken, even by the same key.
	AllocateID(ctx context.Context, id uint64, key Key, lock Lock) (created bool, err error)
	// AcquireReference takes this node's reference of the key, provided that the mapping of the ID
	// is there and says this key; it reports false, and changes nothing, when it is gone or another
	// one. A reference that is there already says this ID afterwards.
	AcquireReference(ctx context.Context, id uint64, key Key, lock Lock) (held bool, err error)
	// Release deletes this node's reference of the key, and nothing else. An absent one is fine.
	Release(ctx context.Context, id uint64, key Key) error
	// UpdateKey refreshes a key that this node uses: it puts back a mapping that
	// is missing, and never overwrites one, and writes this node's reference if
	// it is missing or different. With reliablyMissing the caller knows that the
	// reference is gone: it is created, and an existing one left alone. When the
	// mapping says another key, nothing is written and the error is [ErrTaken].
	UpdateKey(ctx context.Context, id uint64, key Key, reliablyMissing bool, lock Lock) error
	// Restore makes the mapping of the ID say key again, while it says instead:
	// somebody altered it. It reports false when it says anything else.
	Restore(ctx context.Context, id uint64, key, instead Key, lock Lock) (restored bool, err error)

	// Get returns the ID of the key, as any node's reference tells it, or [NoID].
	Get(ctx context.Context, key Key, lock Lock) (uint64, error)
	// GetByID returns the key of the ID, or nil.
	GetByID(ctx context.Context, id uint64) (Key, error)

	// Lock waits for the lock of the key.
	Lock(ctx context.Context, key Key) (Lock, error)
	// CatchUp waits until the handler of ListAndWatch has received every mapping that was
	// there when the lock was acquired. Nothing else finds a mapping without a reference, and
	// without it a key could get a second number.
	CatchUp(ctx context.Context, lock Lock) error

	// ListAndWatch tells the handler of every mapping there is, then that the
	// list is done, then of every change, until ctx ends; it resumes by itself
	// when the connection breaks, and then tells of what has changed meanwhile.
	// A broken entry is logged, counted and skipped. It returns the error of ctx.
	ListAndWatch(ctx context.Context, handler CacheMutations) error

	// RunGC does one round of garbage collection over the IDs from min to max: a mapping without a
	// reference that stale has, at the same revision, is deleted, if under the locks of key and ID
	// there is still no reference. What is found unused is returned for the next round.
	RunGC(ctx context.Context, limiter *rate.Limiter, stale StaleIDs, min, max uint64) (StaleIDs, GCStats, error)
	// RunLocksGC does the same for locks: one whose holder stale has, at the same
	// revision and lease, is deleted. What is held is returned for the next
	// round, also what could not be deleted.
	RunLocksGC(ctx context.Context, stale StaleLocks) (StaleLocks, error)

	// ListIDs returns the IDs that have a mapping, each once and in ascending order,
	// also those of other ranges, and those of mappings that cannot be read.
	ListIDs(ctx context.Context) ([]uint64, error)
	// DeleteID deletes the mapping of an ID at once, without the two rounds of garbage collection:
	// if under the locks of its key and of the ID no node has a reference; else the error is
	// [ErrIDInUse]. It reports false when there is no mapping.
	DeleteID(ctx context.Context, id uint64) (deleted bool, err error)
	// DeleteAllKeys deletes everything: mappings, references and locks.
	DeleteAllKeys(ctx context.Context) error
	// Status says in a line how the store is.
	Status() string
}

// Lock is a lock of a [Backend]. Unlock may be called twice.
type Lock interface{ Unlock() }

// CacheMutations receives, from one goroutine and in the order of the store, what happens to
// mappings. The methods must not call the backend, and do not block.
type CacheMutations interface {
	// OnUpsert: the mapping was made, or its key is another one.
	OnUpsert(id uint64, key Key)
	// OnDelete: the mapping is gone; key is what it was last.
	OnDelete(id uint64, key Key)
	// OnListDone: the first list is complete. It is called once.
	OnListDone()
	// OnReferencesLost: node references of this node may be gone, because a
	// lease has ended. Any goroutine may call it, at any time.
	OnReferencesLost()
}

// StaleIDs are the mappings that a round found unused, with their revisions.
type StaleIDs map[uint64]int64

// StaleLocks are the locks that a round found held, by their paths.
type StaleLocks map[string]LockHolder

// LockHolder is the oldest key of a lock's path.
type LockHolder struct {
	Key      string
	Revision int64 // of the last change
	Lease    int64
}

// GCStats counts what a round found.
type GCStats struct {
	Alive   int // with a reference, or too young to be deleted
	Deleted int
}

// Key is what an ID is allocated for. Its text is canonical: two keys are the
// same key if and only if their texts are equal. Keys are immutable.
type Key interface {
	// GetKey returns the canonical text, which is also what is stored.
	GetKey() string
	// PutKey returns the key of a stored text, of the same type as this one. The
	// error is for a text that is no key.
	PutKey(text string) (Key, error)
	// GetAsMap returns the labels, for people and programs that show them.
	GetAsMap() map[string]string
	// PutKeyFromMap is the reverse of GetAsMap.
	PutKeyFromMap(m map[string]string) (Key, error)
	// String returns the key for logs.
	String() string
}

// NoID is no ID.
const NoID uint64 = 0
