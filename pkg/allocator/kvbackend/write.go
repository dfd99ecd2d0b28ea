package kvbackend

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// AllocateID implements [allocator.Backend].
func (b *Backend) AllocateID(ctx context.Context, id uint64, key allocator.Key, lock allocator.Lock) (bool, error) {
	r, err := b.client.Put(ctx, b.Paths.Mapping(id), []byte(key.GetKey()), kvstore.IfAbsent(), kvstore.Holding(lockOf(lock)))
	if err != nil {
		return false, fmt.Errorf("creating the mapping from %d to %s: %w", id, key, err)
	}
	return r.Done, nil
}

// AcquireReference implements [allocator.Backend].
func (b *Backend) AcquireReference(ctx context.Context, id uint64, key allocator.Key, lock allocator.Lock) (bool, error) {
	r, err := b.client.Put(ctx, b.Paths.Reference(key.GetKey(), b.Node), wire.EncodeAllocatedID(id),
		kvstore.Leased(), kvstore.IfOther(b.Paths.Mapping(id), []byte(key.GetKey())), kvstore.Holding(lockOf(lock)))
	if err != nil {
		return false, fmt.Errorf("taking the reference of %s, %d: %w", key, id, err)
	}
	return r.Done, nil
}

// Release implements [allocator.Backend]. It leaves a reference with another ID alone, which a key that shares the
// path may have.
func (b *Backend) Release(ctx context.Context, id uint64, key allocator.Key) error {
	if _, err := b.client.Delete(ctx, b.Paths.Reference(key.GetKey(), b.Node), kvstore.IfValue(wire.EncodeAllocatedID(id))); err != nil {
		return fmt.Errorf("deleting the reference of %s, %d: %w", key, id, err)
	}
	return nil
}

// UpdateKey implements [allocator.Backend].
func (b *Backend) UpdateKey(ctx context.Context, id uint64, key allocator.Key, reliablyMissing bool, lock allocator.Lock) error {
	held := kvstore.Holding(lockOf(lock))
	r, err := b.client.Put(ctx, b.Paths.Mapping(id), []byte(key.GetKey()), kvstore.IfAbsent(), held)
	if err != nil {
		return fmt.Errorf("refreshing the mapping from %d to %s: %w", id, key, err)
	}
	if r.Done {
		b.wrote("Wrote a missing mapping in use again", id, key)
	}
	need := kvstore.IfChanged()
	if reliablyMissing {
		need = kvstore.IfAbsent()
	}
	r, err = b.client.Put(ctx, b.Paths.Reference(key.GetKey(), b.Node), wire.EncodeAllocatedID(id),
		kvstore.Leased(), need, held, kvstore.IfOther(b.Paths.Mapping(id), []byte(key.GetKey())))
	if err == nil && !r.Met {
		var kv *kvstore.KeyValue
		if kv, _, err = b.client.Get(ctx, b.Paths.Mapping(id)); err == nil && (kv == nil || string(kv.Value) != key.GetKey()) {
			err = allocator.ErrTaken
		}
	}
	if err != nil {
		return fmt.Errorf("refreshing the reference of %s, %d: %w", key, id, err)
	}
	if r.Done {
		b.wrote("Wrote the reference of this node again: it was missing, different, or its lease had ended", id, key)
	}
	return nil
}

// wrote logs a repair by a refresh. When there are too many, as after the end of a lease, the level is debug.
func (b *Backend) wrote(what string, id uint64, key allocator.Key) {
	level := slog.LevelInfo
	if !b.again.Allow() {
		level = slog.LevelDebug
	}
	b.Log.Log(context.Background(), level, what, "id", id, "key", key.String())
}

// Restore implements [allocator.Backend].
func (b *Backend) Restore(ctx context.Context, id uint64, key, instead allocator.Key, lock allocator.Lock) (bool, error) {
	r, err := b.client.Put(ctx, b.Paths.Mapping(id), []byte(key.GetKey()), kvstore.IfValue([]byte(instead.GetKey())), kvstore.Holding(lockOf(lock)))
	if err != nil {
		return false, fmt.Errorf("restoring the mapping from %d to %s: %w", id, key, err)
	}
	return r.Done, nil
}
