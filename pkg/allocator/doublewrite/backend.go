package doublewrite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"golang.org/x/time/rate"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/allocator"
)

// Side is one of the two sides of a [Backend].
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

// Backend is an [allocator.Backend] over two others.
type Backend struct {
	allocator.Backend // the side that is read; it gets all calls that are not for both sides

	sides    [2]allocator.Backend
	read     Side
	log      *slog.Logger
	failures *prometheus.CounterVec

	collecting sync.Mutex // guards the results of the last rounds on the other side
	staleIDs   allocator.StaleIDs
	staleLocks allocator.StaleLocks

	mu sync.Mutex
	// pending has the references that were released on the side that is read, but could not be released on the other
	// side, by the texts of the keys. Guarded by mu.
	pending map[string]pendingRelease
	// busy has the locks for writing a reference on the other side, by the same texts. A pending release is retried
	// at any time, so it may meet an allocation of the same key.
	busy *waiting.NamedLocks
}

type pendingRelease struct {
	id  uint64
	key allocator.Key
}

var _ allocator.Backend = (*Backend)(nil)

// New returns a backend that writes to both and reads one. Metrics are registered unless reg is nil; log may be nil.
func New(primary, secondary allocator.Backend, read Side, log *slog.Logger, reg prometheus.Registerer) *Backend {
	sides := [2]allocator.Backend{primary, secondary}
	return &Backend{
		Backend: sides[read], sides: sides, read: read, log: cmp.Or(log, slog.New(slog.DiscardHandler)),
		pending: make(map[string]pendingRelease), busy: waiting.NewNamedLocks(),
		failures: promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
			Name: "mesh_agent_allocator_doublewrite_failures_total",
			Help: "Operations of a migration that failed on the side that the agent does not read.",
		}, []string{"side", "operation"}),
	}
}

func (b *Backend) other() allocator.Backend { return b.sides[1-b.read] }

// otherTimeout bounds an operation on the side that is not read: while that side is unavailable, the side that is
// read has to continue.
const otherTimeout = 3 * time.Second

// onOther does an operation on the side that is not read, and reports whether it succeeded. A failure is logged and
// counted, and has no other effect.
func (b *Backend) onOther(ctx context.Context, operation string, id uint64, key allocator.Key, do func(context.Context, allocator.Backend) error) bool {
	brief, cancel := context.WithTimeout(ctx, otherTimeout)
	defer cancel()
	err := do(brief, b.other())
	b.spare(ctx, operation, id, key, err)
	return err == nil
}

// spare logs and counts a failure on the side that is not read.
func (b *Backend) spare(ctx context.Context, operation string, id uint64, key allocator.Key, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	side := (1 - b.read).String()
	b.failures.WithLabelValues(side, operation).Inc()
	b.log.Warn("An operation failed on the side that is not read; a refresh or garbage collection repairs it",
		"side", side, "operation", operation, "id", id, "key", fmt.Sprint(key), "error", err)
}

// locks are the locks of a key on both sides. The lock on the side that is not read is nil when it could not be
// acquired.
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
	for side := range b.sides {
		if Side(side) != b.read {
			b.onOther(ctx, "lock", allocator.NoID, key, func(ctx context.Context, other allocator.Backend) (err error) {
				l[side], err = other.Lock(ctx, key)
				return err
			})
			continue
		}
		var err error
		if l[side], err = b.Backend.Lock(ctx, key); err != nil {
			l[side] = nil
			l.Unlock()
			return nil, err
		}
	}
	return l, nil
}

// CatchUp implements [allocator.Backend].
func (b *Backend) CatchUp(ctx context.Context, lock allocator.Lock) error {
	reading, _ := b.split(lock)
	return b.Backend.CatchUp(ctx, reading)
}

func (b *Backend) split(lock allocator.Lock) (reading, other allocator.Lock) {
	if lock == nil {
		return nil, nil
	}
	l := lock.(locks)
	return l[b.read], l[1-b.read]
}

// AllocateID implements [allocator.Backend]. The other side is tried first: an ID that another node has allocated
// there is taken.
func (b *Backend) AllocateID(ctx context.Context, id uint64, key allocator.Key, lock allocator.Lock) (bool, error) {
	reading, other := b.split(lock)
	taken := false
	b.onOther(ctx, "allocate", id, key, func(ctx context.Context, side allocator.Backend) (err error) {
		taken, err = takenBy(ctx, side, id, key, other)
		return err
	})
	if taken {
		return false, nil
	}
	return b.Backend.AllocateID(ctx, id, key, reading)
}

// takenBy creates the mapping on a side and reports whether the ID belongs to another key there.
func takenBy(ctx context.Context, side allocator.Backend, id uint64, key allocator.Key, lock allocator.Lock) (bool, error) {
	created, err := side.AllocateID(ctx, id, key, lock)
	if created || err != nil {
		return false, err
	}
	holder, err := side.GetByID(ctx, id)
	if err != nil || holder == nil {
		return false, err
	}
	return holder.GetKey() != key.GetKey(), nil
}

// Restore implements [allocator.Backend].
func (b *Backend) Restore(ctx context.Context, id uint64, key, instead allocator.Key, lock allocator.Lock) (bool, error) {
	reading, other := b.split(lock)
	restored, err := b.Backend.Restore(ctx, id, key, instead, reading)
	b.onOther(ctx, "restore", id, key, func(ctx context.Context, side allocator.Backend) error {
		_, err := side.Restore(ctx, id, key, instead, other)
		return err
	})
	return restored, err
}

// Get implements [allocator.Backend]. An allocation holds the key's lock. Under this lock, an ID that only the other
// side has counts too, unless it belongs to another key here. So a key that was not copied yet, or could not be
// written here, keeps its ID.
func (b *Backend) Get(ctx context.Context, key allocator.Key, lock allocator.Lock) (uint64, error) {
	reading, other := b.split(lock)
	id, err := b.Backend.Get(ctx, key, reading)
	if id != allocator.NoID || err != nil || other == nil {
		return id, err
	}
	b.onOther(ctx, "get", allocator.NoID, key, func(ctx context.Context, side allocator.Backend) (err error) {
		id, err = side.Get(ctx, key, other)
		return err
	})
	if id == allocator.NoID {
		return id, nil
	}
	holder, err := b.Backend.GetByID(ctx, id)
	if err != nil || holder != nil && holder.GetKey() != key.GetKey() {
		return allocator.NoID, err
	}
	return id, nil
}

// RunGC implements [allocator.Backend], on both sides. The statistics are those
// of the side that is read.
func (b *Backend) RunGC(
	ctx context.Context, limiter *rate.Limiter, stale allocator.StaleIDs, lo, hi uint64,
) (allocator.StaleIDs, allocator.GCStats, error) {
	b.collecting.Lock()
	defer b.collecting.Unlock()
	b.releasePending(ctx)
	next, _, err := b.other().RunGC(ctx, limiter, b.staleIDs, lo, hi)
	b.staleIDs = next
	b.spare(ctx, "collect", allocator.NoID, nil, err)
	return b.Backend.RunGC(ctx, limiter, stale, lo, hi)
}

// RunLocksGC implements [allocator.Backend], on both sides. The result is that
// of the side that is read.
func (b *Backend) RunLocksGC(ctx context.Context, stale allocator.StaleLocks) (allocator.StaleLocks, error) {
	b.collecting.Lock()
	defer b.collecting.Unlock()
	next, err := b.other().RunLocksGC(ctx, b.staleLocks)
	b.staleLocks = next
	b.spare(ctx, "collect-locks", allocator.NoID, nil, err)
	return b.Backend.RunLocksGC(ctx, stale)
}

// DeleteID implements [allocator.Backend]. A mapping in use on the side that is read is deleted on neither side. A
// mapping in use on the other side stays there. The result is that of the side that is read.
func (b *Backend) DeleteID(ctx context.Context, id uint64) (bool, error) {
	deleted, err := b.Backend.DeleteID(ctx, id)
	if err != nil {
		return deleted, err
	}
	b.onOther(ctx, "delete", id, nil, func(ctx context.Context, side allocator.Backend) error {
		_, err := side.DeleteID(ctx, id)
		return err
	})
	return deleted, nil
}

// DeleteAllKeys implements [allocator.Backend].
func (b *Backend) DeleteAllKeys(ctx context.Context) error {
	return errors.Join(b.sides[Primary].DeleteAllKeys(ctx), b.sides[Secondary].DeleteAllKeys(ctx))
}

// Status implements [allocator.Backend].
func (b *Backend) Status() string {
	return fmt.Sprintf("reading %s; primary: %s; secondary: %s", b.read, b.sides[Primary].Status(), b.sides[Secondary].Status())
}
