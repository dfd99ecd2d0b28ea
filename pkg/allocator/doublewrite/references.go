package doublewrite

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
)

// AcquireReference implements [allocator.Backend].
func (b *Backend) AcquireReference(ctx context.Context, id uint64, key allocator.Key, lock allocator.Lock) (bool, error) {
	reading, other := b.split(lock)
	held, err := b.Backend.AcquireReference(ctx, id, key, reading)
	if held && err == nil {
		b.refreshOther(ctx, "reference", id, key, other)
	}
	return held, err
}

// ReferencesOf implements [allocator.References] with the side that is read.
func (b *Backend) ReferencesOf(ctx context.Context, key allocator.Key, lock allocator.Lock) (allocator.Referrers, error) {
	by, can := b.Backend.(allocator.References)
	if !can {
		return allocator.Referrers{}, errors.ErrUnsupported
	}
	reading, _ := b.split(lock)
	return by.ReferencesOf(ctx, key, reading)
}

// refreshOther refreshes mapping and reference on the other side. From then on no release is pending for the key. A
// release in progress ends before.
func (b *Backend) refreshOther(ctx context.Context, operation string, id uint64, key allocator.Key, lock allocator.Lock) {
	b.mu.Lock()
	delete(b.pending, key.GetKey())
	b.mu.Unlock()
	if b.busy.Acquire(ctx, key.GetKey()) != nil {
		return // ctx has ended
	}
	defer b.busy.Release(key.GetKey())
	b.onOther(ctx, operation, id, key, func(ctx context.Context, side allocator.Backend) error {
		return side.UpdateKey(ctx, id, key, false, lock)
	})
}

// Release implements [allocator.Backend]. A reference that cannot be deleted on
// the other side is remembered, since nothing refreshes a key that is not used.
func (b *Backend) Release(ctx context.Context, id uint64, key allocator.Key) error {
	if err := b.Backend.Release(ctx, id, key); err != nil {
		return err
	}
	err := b.busy.Acquire(ctx, key.GetKey())
	if err == nil {
		defer b.busy.Release(key.GetKey())
	}
	released := err == nil && b.releaseOther(ctx, pendingRelease{id, key})
	b.mu.Lock()
	defer b.mu.Unlock()
	if released {
		delete(b.pending, key.GetKey())
	} else {
		b.pending[key.GetKey()] = pendingRelease{id, key}
	}
	return nil
}

func (b *Backend) releaseOther(ctx context.Context, o pendingRelease) bool {
	return b.onOther(ctx, "release", o.id, o.key, func(ctx context.Context, side allocator.Backend) error {
		return side.Release(ctx, o.id, o.key)
	})
}

// releasePending retries the releases that failed on the other side.
func (b *Backend) releasePending(ctx context.Context) {
	b.mu.Lock()
	all := slices.Collect(maps.Values(b.pending))
	b.mu.Unlock()
	for _, o := range all {
		if !b.releaseOne(ctx, o) {
			return
		}
	}
}

// releaseOne makes a release if it is still pending: the key may have been allocated again meanwhile. It reports
// whether to continue with other releases.
func (b *Backend) releaseOne(ctx context.Context, o pendingRelease) bool {
	if b.busy.Acquire(ctx, o.key.GetKey()) != nil {
		return false
	}
	defer b.busy.Release(o.key.GetKey())
	b.mu.Lock()
	is, still := b.pending[o.key.GetKey()]
	b.mu.Unlock()
	if still && is.id == o.id && b.releaseOther(ctx, o) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if is, still := b.pending[o.key.GetKey()]; still && is.id == o.id {
			delete(b.pending, o.key.GetKey())
		}
	}
	return true
}

// UpdateKey implements [allocator.Backend]. reliablyMissing applies only to the side that is read.
func (b *Backend) UpdateKey(ctx context.Context, id uint64, key allocator.Key, reliablyMissing bool, lock allocator.Lock) error {
	reading, other := b.split(lock)
	err := b.Backend.UpdateKey(ctx, id, key, reliablyMissing, reading)
	b.refreshOther(ctx, "update", id, key, other)
	b.releasePending(ctx)
	return err
}
