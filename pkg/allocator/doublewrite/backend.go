package doublewrite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
)

// Side is one of the two.
type Side int

// The sides.
const (
	Primary Side = iota
	Secondary
)

// String returns "primary" or "secondary".
func (s Side) String() string {
	if s == Secondary {
		return "secondary"
	}
	return "primary"
}

// Backend is an [allocator.Backend] over two.
type Backend struct {
	sides    [2]allocator.Backend
	read     Side
	log      *slog.Logger
	failures *prometheus.CounterVec

	mu sync.Mutex // guards what the last rounds of collection found on the other side
	// staleIDs and staleLocks go with the results of the side that is read.
	staleIDs   allocator.StaleIDs
	staleLocks allocator.StaleLocks
}

var _ allocator.Backend = (*Backend)(nil)

// New returns a backend that writes to both and reads one. Metrics are
// registered unless reg is nil; log is nil for none.
func New(primary, secondary allocator.Backend, read Side, log *slog.Logger, reg prometheus.Registerer) *Backend {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	b := &Backend{
		sides: [2]allocator.Backend{primary, secondary}, read: read, log: log,
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mesh_agent_allocator_doublewrite_failures_total",
			Help: "Operations of a migration that failed on the side that is not read.",
		}, []string{"side", "operation"}),
	}
	if reg != nil {
		reg.MustRegister(b.failures)
	}
	return b
}

func (b *Backend) reading() allocator.Backend { return b.sides[b.read] }

func (b *Backend) other() allocator.Backend { return b.sides[1-b.read] }

// spare notes what failed on the side that is not read, where it does no harm.
func (b *Backend) spare(ctx context.Context, operation string, id uint64, key allocator.Key, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	side := (1 - b.read).String()
	b.failures.WithLabelValues(side, operation).Inc()
	b.log.Warn("A write failed on the side that is not read; refreshing makes it good",
		"side", side, "operation", operation, "id", id, "key", fmt.Sprint(key), "error", err)
}

// locks are the locks of a key on both sides; that of the side that is not read
// is nil when it could not be had.
type locks [2]allocator.Lock

// Unlock implements [allocator.Lock].
func (l locks) Unlock() {
	for _, side := range l {
		if side != nil {
			side.Unlock()
		}
	}
}

// Lock implements [allocator.Backend]: on both sides, the primary first.
func (b *Backend) Lock(ctx context.Context, key allocator.Key) (allocator.Lock, error) {
	var l locks
	for side, backend := range b.sides {
		lock, err := backend.Lock(ctx, key)
		switch {
		case err == nil:
			l[side] = lock
		case Side(side) == b.read:
			l.Unlock()
			return nil, err
		default:
			b.spare(ctx, "lock", allocator.NoID, key, err)
		}
	}
	return l, nil
}

// CatchUp implements [allocator.Backend].
func (b *Backend) CatchUp(ctx context.Context, lock allocator.Lock) error {
	reading, _ := b.split(lock)
	return b.reading().CatchUp(ctx, reading)
}

func (b *Backend) split(lock allocator.Lock) (reading, other allocator.Lock) {
	if lock == nil {
		return nil, nil
	}
	l := lock.(locks)
	return l[b.read], l[1-b.read]
}

// AllocateID implements [allocator.Backend]. The other side is asked first: a
// number that somebody who reads it has handed out is taken.
func (b *Backend) AllocateID(ctx context.Context, id uint64, key allocator.Key, lock allocator.Lock) (bool, error) {
	reading, other := b.split(lock)
	taken, err := b.takenElsewhere(ctx, id, key, other)
	b.spare(ctx, "allocate", id, key, err)
	if taken {
		return false, nil
	}
	return b.reading().AllocateID(ctx, id, key, reading)
}

// takenElsewhere creates the mapping on the other side and tells whether the
// number belongs to another key there.
func (b *Backend) takenElsewhere(ctx context.Context, id uint64, key allocator.Key, lock allocator.Lock) (bool, error) {
	created, err := b.other().AllocateID(ctx, id, key, lock)
	if created || err != nil {
		return false, err
	}
	holder, err := b.other().GetByID(ctx, id)
	if err != nil || holder == nil {
		return false, err
	}
	return holder.GetKey() != key.GetKey(), nil
}

// AcquireReference implements [allocator.Backend].
func (b *Backend) AcquireReference(ctx context.Context, id uint64, key allocator.Key, lock allocator.Lock) (bool, error) {
	reading, other := b.split(lock)
	held, err := b.reading().AcquireReference(ctx, id, key, reading)
	if held && err == nil {
		b.spare(ctx, "reference", id, key, b.other().UpdateKey(ctx, id, key, false, other))
	}
	return held, err
}

// Release implements [allocator.Backend].
func (b *Backend) Release(ctx context.Context, id uint64, key allocator.Key) error {
	b.spare(ctx, "release", id, key, b.other().Release(ctx, id, key))
	return b.reading().Release(ctx, id, key)
}

// UpdateKey implements [allocator.Backend]. That the reference is gone is known
// of the side that is read alone.
func (b *Backend) UpdateKey(ctx context.Context, id uint64, key allocator.Key, reliablyMissing bool, lock allocator.Lock) error {
	reading, other := b.split(lock)
	err := b.reading().UpdateKey(ctx, id, key, reliablyMissing, reading)
	b.spare(ctx, "update", id, key, b.other().UpdateKey(ctx, id, key, false, other))
	return err
}

// Restore implements [allocator.Backend].
func (b *Backend) Restore(ctx context.Context, id uint64, key, instead allocator.Key) (bool, error) {
	_, err := b.other().Restore(ctx, id, key, instead)
	b.spare(ctx, "restore", id, key, err)
	return b.reading().Restore(ctx, id, key, instead)
}

// Get implements [allocator.Backend].
func (b *Backend) Get(ctx context.Context, key allocator.Key, lock allocator.Lock) (uint64, error) {
	reading, _ := b.split(lock)
	return b.reading().Get(ctx, key, reading)
}

// GetByID implements [allocator.Backend].
func (b *Backend) GetByID(ctx context.Context, id uint64) (allocator.Key, error) {
	return b.reading().GetByID(ctx, id)
}

// ListAndWatch implements [allocator.Backend].
func (b *Backend) ListAndWatch(ctx context.Context, handler allocator.CacheMutations) error {
	return b.reading().ListAndWatch(ctx, handler)
}

// RunGC implements [allocator.Backend], on both sides. The statistics are those
// of the side that is read.
func (b *Backend) RunGC(
	ctx context.Context, limiter *rate.Limiter, stale allocator.StaleIDs, lo, hi uint64,
) (allocator.StaleIDs, allocator.GCStats, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	next, _, err := b.other().RunGC(ctx, limiter, b.staleIDs, lo, hi)
	b.staleIDs = next
	b.spare(ctx, "collect", allocator.NoID, nil, err)
	return b.reading().RunGC(ctx, limiter, stale, lo, hi)
}

// RunLocksGC implements [allocator.Backend], on both sides. The result is that
// of the side that is read.
func (b *Backend) RunLocksGC(ctx context.Context, stale allocator.StaleLocks) (allocator.StaleLocks, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	next, err := b.other().RunLocksGC(ctx, b.staleLocks)
	b.staleLocks = next
	b.spare(ctx, "collect-locks", allocator.NoID, nil, err)
	return b.reading().RunLocksGC(ctx, stale)
}

// DeleteAllKeys implements [allocator.Backend].
func (b *Backend) DeleteAllKeys(ctx context.Context) error {
	return errors.Join(b.sides[Primary].DeleteAllKeys(ctx), b.sides[Secondary].DeleteAllKeys(ctx))
}

// Encode implements [allocator.Backend].
func (b *Backend) Encode(key allocator.Key) string { return b.reading().Encode(key) }

// Status implements [allocator.Backend].
func (b *Backend) Status() string {
	return fmt.Sprintf("reading %s; primary: %s; secondary: %s", b.read, b.sides[Primary].Status(), b.sides[Secondary].Status())
}
