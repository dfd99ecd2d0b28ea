package crdbackend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"golang.org/x/time/rate"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
)

// RunGC implements [allocator.Backend]. It skips mappings of other programs: each program collects its own.
func (b *Backend) RunGC(
	ctx context.Context, limiter *rate.Limiter, stale allocator.StaleIDs, lo, hi uint64,
) (allocator.StaleIDs, allocator.GCStats, error) {
	limiter = cmp.Or(limiter, rate.NewLimiter(rate.Inf, 0))
	list, err := b.list(ctx, ManagedBy+"="+Manager)
	if err != nil {
		return stale, allocator.GCStats{}, fmt.Errorf("collecting unused CiliumIdentities: %w", err)
	}
	used, err := b.used(ctx) // read after the mappings, so that none with a reference looks unused
	if err != nil {
		return stale, allocator.GCStats{}, err
	}
	next, stats := make(allocator.StaleIDs), allocator.GCStats{}
	var errs []error
	for i := range list.Items {
		o := &list.Items[i]
		id, key, err := b.read(o)
		if err != nil || id < lo || id > hi {
			continue
		}
		revision := revisionOf(o)
		deleted := false
		switch {
		case used[id]:
		case stale[id] != revision:
			next[id] = revision
		default:
			if err := limiter.Wait(ctx); err != nil {
				return stale, stats, err
			}
			if deleted, err = b.collect(ctx, o, id, key); err != nil {
				next[id] = revision // the next round tries again
				errs = append(errs, err)
			}
		}
		if deleted {
			stats.Deleted++
		} else {
			stats.Alive++
		}
	}
	return next, stats, errors.Join(append(errs, b.collectReferences(ctx))...)
}

func (b *Backend) list(ctx context.Context, selector string) (*unstructured.UnstructuredList, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	return b.identities.List(ctx, metav1.ListOptions{LabelSelector: selector})
}

// revisionOf returns a number that distinguishes the states of an object.
func revisionOf(o *unstructured.Unstructured) int64 {
	revision, err := strconv.ParseInt(o.GetResourceVersion(), 10, 64)
	if err != nil {
		return -1 // the deletion checks the resource version itself
	}
	return revision
}

// collect deletes a mapping if it is still unused and unchanged.
func (b *Backend) collect(ctx context.Context, o *unstructured.Unstructured, id uint64, key allocator.Key) (bool, error) {
	deleted, err := b.deleteUnused(ctx, o, id, key)
	if errors.Is(err, allocator.ErrIDInUse) {
		return false, nil
	}
	if deleted {
		b.Log.Info("Deleted an unused CiliumIdentity", "id", id, "key", key.String())
	}
	return deleted, err
}

// deleteUnused deletes a mapping if it is unchanged and, under the lock of its key, unused here and elsewhere. For a
// mapping in use the error is [allocator.ErrIDInUse].
func (b *Backend) deleteUnused(ctx context.Context, o *unstructured.Unstructured, id uint64, key allocator.Key) (bool, error) {
	lock, err := b.Lock(ctx, key)
	if err != nil {
		return false, err
	}
	defer lock.Unlock()
	ctx, done, err := under(ctx, lock)
	if err != nil {
		return false, err
	}
	defer done()
	used, err := b.InUse(ctx, id, key)
	if err == nil && !used && b.Elsewhere != nil {
		used, err = b.Elsewhere(ctx, id, key)
	}
	if err != nil {
		return false, err
	}
	if used {
		return false, fmt.Errorf("deleting the CiliumIdentity %d: %w", id, allocator.ErrIDInUse)
	}
	deleted, err := deleteIf(ctx, b.identities, o.GetName(), stateOf(o))
	if err != nil {
		err = fmt.Errorf("deleting the CiliumIdentity %d: %w", id, err)
	}
	return deleted, err
}

// ListIDs implements [allocator.Backend]. It includes the mappings of other programs.
func (b *Backend) ListIDs(ctx context.Context) ([]uint64, error) {
	list, err := b.list(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("listing the CiliumIdentities: %w", err)
	}
	ids := make([]uint64, 0, len(list.Items))
	for i := range list.Items {
		if id, err := strconv.ParseUint(list.Items[i].GetName(), 10, 64); err == nil && id != allocator.NoID {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// DeleteID implements [allocator.Backend]. It refuses mappings of other programs, which may be in use without a
// reference that this package can see.
func (b *Backend) DeleteID(ctx context.Context, id uint64) (bool, error) {
	o, err := b.object(ctx, id)
	if err != nil || o == nil {
		return false, err
	}
	if o.GetLabels()[ManagedBy] != Manager {
		return false, fmt.Errorf("deleting the CiliumIdentity %d: another program created it and knows whether it is in use: delete it there", id)
	}
	_, key, err := b.read(o)
	if err != nil {
		return false, err
	}
	deleted, err := b.deleteUnused(ctx, o, id, key)
	if err == nil && !deleted {
		err = fmt.Errorf("deleting the CiliumIdentity %d: it has changed meanwhile", id)
	}
	return deleted, err
}

func (b *Backend) collectReferences(ctx context.Context) error {
	leases, err := b.listLeases(ctx, kindNode)
	if err != nil {
		return err
	}
	there := make(map[string]bool, len(leases))
	for i := range leases {
		o := &leases[i]
		if !b.isVoid(o) {
			there[o.GetName()] = true
			continue
		}
		if _, err := deleteIf(ctx, b.leases, o.GetName(), stateOf(o)); err != nil {
			return fmt.Errorf("deleting the Lease %s of a process that has ended: %w", o.GetName(), err)
		}
	}
	b.collecting.Lock()
	defer b.collecting.Unlock()
	maps.DeleteFunc(b.seen, func(name string, _ observation) bool { return !there[name] })
	return nil
}

// RunLocksGC implements [allocator.Backend].
func (b *Backend) RunLocksGC(ctx context.Context, stale allocator.StaleLocks) (allocator.StaleLocks, error) {
	leases, err := b.listLeases(ctx, kindLock)
	if err != nil {
		return stale, err
	}
	held := make(allocator.StaleLocks)
	var errs []error
	for i := range leases {
		o := &leases[i]
		h := allocator.LockHolder{Key: string(o.GetUID()), Revision: revisionOf(o)}
		if stale[o.GetName()] != h {
			held[o.GetName()] = h
			continue
		}
		if err := b.deleteLease(ctx, o.GetName(), o.GetUID()); err != nil {
			held[o.GetName()] = h
			errs = append(errs, fmt.Errorf("deleting the stale lock %s: %w", o.GetName(), err))
			continue
		}
		b.Log.Warn("Deleted a lock that a client held too long", "lease", o.GetName())
	}
	return held, errors.Join(errs...)
}
