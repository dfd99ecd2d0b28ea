package kvbackend

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/time/rate"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// RunGC implements [allocator.Backend]. It reads all mappings, and then all references, so that a mapping with a
// reference can never look unused because the two were written meanwhile. It takes locks and checks again only for
// mappings that are unused for the second time.
func (b *Backend) RunGC(
	ctx context.Context, limiter *rate.Limiter, stale allocator.StaleIDs, lo, hi uint64,
) (allocator.StaleIDs, allocator.GCStats, error) {
	usage, err := b.survey(ctx)
	if err != nil {
		return stale, allocator.GCStats{}, fmt.Errorf("collecting unused mappings at %s: %w", b.Paths, err)
	}
	next, stats := make(allocator.StaleIDs), allocator.GCStats{}
	var errs []error
	limiter = cmp.Or(limiter, rate.NewLimiter(rate.Inf, 0))
	unused := usage.Unused(lo, hi)
	for _, id := range unused.IDs() {
		revision := unused[id]
		if stale[id] != revision {
			next[id] = revision
			continue
		}
		if err := limiter.Wait(ctx); err != nil {
			return stale, stats, err
		}
		deleted, err := b.collect(ctx, id, revision)
		if errors.Is(err, kvstore.ErrLockLeaseExpired) {
			return stale, stats, err // the next deletion would fail in the same way
		}
		if err != nil && !errors.Is(err, allocator.ErrIDInUse) {
			next[id] = revision // the next round tries again
			errs = append(errs, err)
		}
		if deleted {
			stats.Deleted++
		}
	}
	stats.Alive = usage.Len(lo, hi) - stats.Deleted
	return next, stats, errors.Join(errs...)
}

// survey reads the mappings and references, and records which mappings are in use.
func (b *Backend) survey(ctx context.Context) (*allocator.Usage, error) {
	usage := allocator.NewUsage()
	err := b.list(ctx, b.Paths.Mappings(), func(name string, kv *kvstore.KeyValue) {
		id, err := allocator.MappingID(name)
		if err == nil {
			usage.Mapping(id, string(kv.Value), kv.ModRevision)
			_, err = readMapping(b.Keys, kv.Value)
		}
		if err != nil {
			b.bad.found(badMapping, string(kv.Key), kv.Value, err)
		}
	})
	if err != nil {
		return nil, err
	}
	err = b.list(ctx, b.Paths.References(), func(name string, kv *kvstore.KeyValue) {
		key, _, id, err := allocator.ReadReference(name, kv.Value)
		if err != nil {
			b.bad.found(badReference, string(kv.Key), kv.Value, err)
			return
		}
		usage.Reference(key, id)
	})
	return usage, err
}

// ListIDs implements [allocator.Backend].
func (b *Backend) ListIDs(ctx context.Context) ([]uint64, error) {
	var ids []uint64
	err := b.list(ctx, b.Paths.Mappings(), func(name string, kv *kvstore.KeyValue) {
		if id, err := allocator.MappingID(name); err != nil {
			b.bad.found(badMapping, string(kv.Key), kv.Value, err)
		} else {
			ids = append(ids, id)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listing the IDs at %s: %w", b.Paths, err)
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// DeleteID implements [allocator.Backend].
func (b *Backend) DeleteID(ctx context.Context, id uint64) (bool, error) {
	kv, _, err := b.client.Get(ctx, b.Paths.Mapping(id))
	if err != nil {
		return false, fmt.Errorf("deleting the mapping of %d: %w", id, err)
	}
	if kv == nil {
		return false, nil
	}
	deleted, err := b.deleteUnused(ctx, id, kv)
	if err == nil && !deleted {
		err = fmt.Errorf("deleting the mapping of %d: it has changed meanwhile", id)
	}
	return deleted, err
}

// collect deletes a mapping if it is still unused and unchanged.
func (b *Backend) collect(ctx context.Context, id uint64, revision int64) (bool, error) {
	kv, _, err := b.client.Get(ctx, b.Paths.Mapping(id))
	if err != nil || kv == nil || kv.ModRevision != revision {
		return false, err
	}
	return b.deleteUnused(ctx, id, kv)
}

// deleteUnused deletes a mapping if it is unchanged and, under the locks of its key and its ID, unused.
func (b *Backend) deleteUnused(ctx context.Context, id uint64, kv *kvstore.KeyValue) (bool, error) {
	key, revision := string(kv.Value), kv.ModRevision
	byKey, err := b.client.Lock(ctx, b.Paths.Lock(key))
	if err != nil {
		return false, err
	}
	defer byKey.Unlock()
	byID, err := b.client.Lock(ctx, b.Paths.CollectionLock(id))
	if err != nil {
		return false, err
	}
	defer byID.Unlock()
	users, err := b.references(ctx, key, byKey)
	switch {
	case err != nil:
		return false, err
	case slices.Contains(users, id):
		return false, fmt.Errorf("deleting the mapping from %d to %s: %w", id, key, allocator.ErrIDInUse)
	}
	stays := false
	if b.Elsewhere != nil {
		of, _ := readMapping(b.Keys, kv.Value) // nil when it cannot be read
		stays, err = b.Elsewhere(ctx, id, of)
	}
	if err != nil {
		return false, err
	}
	if stays {
		return false, fmt.Errorf("deleting the mapping from %d to %s, which is needed elsewhere: %w", id, key, allocator.ErrIDInUse)
	}
	r, err := b.client.Delete(ctx, b.Paths.Mapping(id),
		kvstore.IfRevision(revision), kvstore.Holding(byKey), kvstore.Holding(byID), kvstore.Holding(b.Collecting))
	if err != nil {
		return false, fmt.Errorf("deleting the unused mapping of %d: %w", id, err)
	}
	if r.Done {
		b.Log.Info("Deleted an unused mapping", "id", id, "key", key)
	}
	return r.Done, nil
}

// RunLocksGC implements [allocator.Backend].
func (b *Backend) RunLocksGC(ctx context.Context, stale allocator.StaleLocks) (allocator.StaleLocks, error) {
	held := make(allocator.StaleLocks)
	err := b.list(ctx, b.Paths.Locks(), func(_ string, kv *kvstore.KeyValue) {
		path := string(kv.Key[:bytes.LastIndexByte(kv.Key, '/')])
		// A lock's key is never written again, so this is the revision of its creation.
		if h, ok := held[path]; !ok || kv.ModRevision < h.Revision {
			held[path] = allocator.LockHolder{Key: string(kv.Key), Revision: kv.ModRevision, Lease: kv.Lease}
		}
	})
	if err != nil {
		return stale, fmt.Errorf("collecting stale locks at %s: %w", b.Paths, err)
	}
	var errs []error
	for path, h := range held {
		if stale[path] != h {
			continue
		}
		r, err := b.client.Delete(ctx, h.Key, kvstore.IfRevision(h.Revision), kvstore.Holding(b.Collecting))
		if err != nil {
			errs = append(errs, fmt.Errorf("deleting the stale lock %s: %w", h.Key, err))
			continue
		}
		if delete(held, path); r.Done {
			b.Log.Warn("Deleted a lock that a client held too long", "key", h.Key, "lease", fmt.Sprintf("%x", h.Lease))
		}
	}
	return held, errors.Join(errs...)
}
