package allocator

import (
	"context"
	"errors"

	"golang.org/x/time/rate"
)

// ErrIdentityNonExistent is the error of a call that needs an identity that does not exist, such as the release of a
// key that is not in use.
var ErrIdentityNonExistent = errors.New("the identity does not exist")

// ErrTaken is the error of a call that uses an ID that belongs to another key.
var ErrTaken = errors.New("the ID belongs to another key")

// ErrIDInUse is the error of the deletion of an ID that a node uses.
var ErrIDInUse = errors.New("a node uses the ID")

// Backend is the shared store of an [Allocator]. All methods may be called by any number of goroutines. Each ends
// with its context, and has deadlines of its own. After an error of a write, it is unknown whether the write
// happened.
//
// A nil lock is no condition. With any other lock, the operation is done only while the lock is held, in one
// transaction. If the lock is not held, the error is [kvstore.ErrLockLeaseExpired].
type Backend interface {
	// AllocateID creates the mapping from the ID to the key. It reports false,
	// and changes nothing, when the ID is taken, even by the same key.
	AllocateID(ctx context.Context, id uint64, key Key, lock Lock) (created bool, err error)
	// AcquireReference takes this node's reference of the key, provided that the mapping of the ID exists and has
	// this key. It reports false, and changes nothing, when the mapping is missing or has another key. An existing
	// reference of this node has this ID afterwards.
	AcquireReference(ctx context.Context, id uint64, key Key, lock Lock) (held bool, err error)
	// Release deletes this node's reference of the key, and nothing else. A missing reference is no error.
	Release(ctx context.Context, id uint64, key Key) error
	// UpdateKey refreshes a key that this node uses. It writes a missing mapping again, and never overwrites one. It
	// writes this node's reference if it is missing or different. reliablyMissing means that the caller knows that
	// the reference is gone: then it is created, and an existing one is not changed. When the mapping has another
	// key, nothing is written and the error is [ErrTaken].
	UpdateKey(ctx context.Context, id uint64, key Key, reliablyMissing bool, lock Lock) error
	// Restore changes the mapping of the ID back to key if its key is instead, because another writer has altered it.
	// It reports false when the mapping has any other key.
	Restore(ctx context.Context, id uint64, key, instead Key, lock Lock) (restored bool, err error)

	// Get returns the ID that any node's reference has for the key, or [NoID].
	Get(ctx context.Context, key Key, lock Lock) (uint64, error)
	// GetByID returns the key of the ID, or nil.
	GetByID(ctx context.Context, id uint64) (Key, error)

	// Lock waits for the lock of the key.
	Lock(ctx context.Context, key Key) (Lock, error)
	// CatchUp waits until the handler of ListAndWatch has received every mapping that existed when the lock was
	// acquired. Nothing else finds a mapping without a reference, so without this wait a key could get a second ID.
	CatchUp(ctx context.Context, lock Lock) error

	// ListAndWatch reports every existing mapping to the handler, then that the list is done, then every change,
	// until ctx ends. When the connection breaks, it resumes by itself and reports the changes since then. A broken
	// entry is logged, counted and skipped. It returns the error of ctx.
	ListAndWatch(ctx context.Context, handler CacheMutations) error

	// RunGC does one round of garbage collection over the IDs from min to max. It deletes a mapping without a
	// reference that stale has at the same revision, if there is still no reference under the locks of key and ID. It
	// returns the mappings that it found unused, for the next round.
	RunGC(ctx context.Context, limiter *rate.Limiter, stale StaleIDs, min, max uint64) (StaleIDs, GCStats, error)
	// RunLocksGC does the same for locks: it deletes a lock whose holder stale has at the same revision and lease. It
	// returns the locks that are held, for the next round, also those that could not be deleted.
	RunLocksGC(ctx context.Context, stale StaleLocks) (StaleLocks, error)

	// ListIDs returns the IDs that have a mapping, each once and in ascending order. It includes IDs of other ranges,
	// and IDs whose mappings cannot be read.
	ListIDs(ctx context.Context) ([]uint64, error)
	// DeleteID deletes the mapping of an ID at once, without the two rounds of garbage collection. Under the locks of
	// the key and of the ID it checks that no node has a reference; else the error is [ErrIDInUse]. It reports false
	// when there is no mapping.
	DeleteID(ctx context.Context, id uint64) (deleted bool, err error)
	// DeleteAllKeys deletes everything: mappings, references and locks.
	DeleteAllKeys(ctx context.Context) error
	// Status describes the state of the store in one line.
	Status() string
}

// Lock is a lock of a [Backend]. Unlock may be called twice.
type Lock interface{ Unlock() }

// CacheMutations receives the changes of mappings, from one goroutine and in the order of the store. The methods must
// not call the backend, and must not block.
type CacheMutations interface {
	// OnUpsert: the mapping is new, or its key has changed.
	OnUpsert(id uint64, key Key)
	// OnDelete: the mapping is gone; key is its last key.
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

// GCStats counts the mappings that a round found.
type GCStats struct {
	Alive   int // with a reference, or too young to be deleted
	Deleted int
}

// Key is what an ID is allocated for. Its text is canonical: two keys are the
// same key if and only if their texts are equal. Keys are immutable.
type Key interface {
	// GetKey returns the canonical text, which is also the stored text.
	GetKey() string
	// PutKey returns the key of a stored text, of the same type as this one. It fails for a text that is not a key.
	PutKey(text string) (Key, error)
	// GetAsMap returns the labels, for users and for programs that show them.
	GetAsMap() map[string]string
	// PutKeyFromMap is the reverse of GetAsMap.
	PutKeyFromMap(m map[string]string) (Key, error)
	// String returns the key for logs.
	String() string
}

// NoID is the value for "no ID".
const NoID uint64 = 0
