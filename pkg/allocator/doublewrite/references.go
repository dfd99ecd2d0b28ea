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

// ReferencesOf implements [allocator.References] as the side that is read does.
func (b *Backend) ReferencesOf(ctx context.Context, key allocator.Key, lock allocator.Lock) (allocator.Referrers, error) {
	by, can := b.Backend.(allocator.References)
	if !can {
		return allocator.Referrers{}, errors.ErrUnsupported
	}
	reading, _ := b.split(lock)
	return by.ReferencesOf(ctx, key, reading)
}

// refreshOther makes mapping and reference what they should be on the other side.
// Nothing is pending for the key from now on; a release that is under way ends before.
func (b *Backend) refreshOther(ctx context.Context, operation string, id uint64, key allocator.Key, lock allocator.Lock) {
	b.mu.Lock()
	delete(b.pending, key.GetKey())
	b.mu.Unlock()
	if b.busy.Acquire(ctx, key.GetKey()) != nil {
		return // the caller's end
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

// releasePending tries again what could not be released on the other side.
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

// releaseOne releases what is still pending: the key may have been taken again since it
// was looked at. It reports whether to go on.
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

// UpdateKey implements [allocator.Backend]. That the reference is gone is known
// of the side that is read alone.
func (b *Backend) UpdateKey(ctx context.Context, id uint64, key allocator.Key, reliablyMissing bool, lock allocator.Lock) error {
	reading, other := b.split(lock)
	err := b.Backend.UpdateKey(ctx, id, key, reliablyMissing, reading)
	b.refreshOther(ctx, "update", id, key, other)
	b.releasePending(ctx)
	return err
}
