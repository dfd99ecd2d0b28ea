package kvbackend

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// Get implements [allocator.Backend]. An ID in use counts, also while its mapping is missing. An ID whose mapping has
// another key does not count.
func (b *Backend) Get(ctx context.Context, key allocator.Key, lock allocator.Lock) (uint64, error) {
	ids, err := b.references(ctx, key.GetKey(), lock)
	if err != nil {
		return allocator.NoID, err
	}
	orphan := allocator.NoID
	for _, id := range ids {
		kv, _, err := b.client.Get(ctx, b.Paths.Mapping(id), kvstore.Holding(lockOf(lock)))
		if err != nil {
			return allocator.NoID, fmt.Errorf("looking up %s: %w", key, err)
		}
		switch {
		case kv == nil && orphan == allocator.NoID:
			orphan = id
		case kv != nil && string(kv.Value) == key.GetKey():
			return id, nil
		}
	}
	// A node uses an ID whose mapping is gone. That node, or the next node that needs the key, writes the mapping
	// again. If the key can share its path with another key, the ID may also belong to that key. Then the lookup
	// fails until the mapping exists again.
	if orphan != allocator.NoID && strings.Contains(key.GetKey(), "//") {
		return allocator.NoID, fmt.Errorf("looking up %s: the mapping of %d, which is in use for it or for a key like it, is missing", key, orphan)
	}
	return orphan, nil
}

// InUse reports whether any node refers to the key with this ID.
func (b *Backend) InUse(ctx context.Context, id uint64, key allocator.Key) (bool, error) {
	ids, err := b.references(ctx, key.GetKey(), nil)
	return slices.Contains(ids, id), err
}

// references returns the IDs in the references of this key, each once, in order. There is more than one when keys
// share the path.
func (b *Backend) references(ctx context.Context, key string, lock allocator.Lock) ([]uint64, error) {
	var ids []uint64
	if err := b.eachReference(ctx, key, lock, func(_ string, id uint64) { ids = append(ids, id) }); err != nil {
		return nil, err
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// eachReference calls found for each reference of this key, or of one that shares its path.
func (b *Backend) eachReference(ctx context.Context, key string, lock allocator.Lock, found func(node string, id uint64)) error {
	prefix := b.Paths.ReferencesOf(key)
	err := b.list(ctx, prefix, func(node string, kv *kvstore.KeyValue) {
		if strings.Contains(node, "/") {
			return // of a longer key
		}
		if id, ok := b.reference(kv); ok {
			found(node, id)
		}
	}, kvstore.Holding(lockOf(lock)))
	if err != nil {
		return fmt.Errorf("looking for references of %s: %w", key, err)
	}
	return nil
}

func (b *Backend) list(ctx context.Context, prefix string, each func(name string, kv *kvstore.KeyValue), opts ...kvstore.ReadOption) error {
	_, err := b.client.List(ctx, prefix, func(p kvstore.Page) error {
		for i := range p.Items {
			each(string(p.Items[i].Key[len(prefix):]), &p.Items[i])
		}
		return nil
	}, opts...)
	return err
}

func (b *Backend) reference(kv *kvstore.KeyValue) (id uint64, ok bool) {
	_, _, id, err := allocator.ReadReference(string(kv.Key[len(b.Paths.References()):]), kv.Value)
	if err != nil {
		b.bad.found(badReference, string(kv.Key), kv.Value, err)
	}
	return id, err == nil
}

// GetByID implements [allocator.Backend].
func (b *Backend) GetByID(ctx context.Context, id uint64) (allocator.Key, error) {
	kv, _, err := b.client.Get(ctx, b.Paths.Mapping(id))
	switch {
	case err != nil:
		return nil, fmt.Errorf("looking up %d: %w", id, err)
	case kv == nil:
		return nil, nil
	}
	key, err := readMapping(b.Keys, kv.Value)
	if err != nil {
		b.bad.found(badMapping, string(kv.Key), kv.Value, err)
		return nil, fmt.Errorf("reading the mapping %s: %w", kv.Key, err)
	}
	return key, nil
}

// ReferencesOf implements [allocator.References].
func (b *Backend) ReferencesOf(ctx context.Context, key allocator.Key, lock allocator.Lock) (allocator.Referrers, error) {
	who := allocator.Referrers{Others: make(map[uint64]allocator.Referrer)}
	err := b.eachReference(ctx, key.GetKey(), lock, func(node string, id uint64) {
		if node == b.Node {
			who.Own = id
			return
		}
		r := who.Others[id]
		r.Nodes = append(r.Nodes, node)
		who.Others[id] = r
	})
	if err != nil {
		return who, err
	}
	for id, r := range who.Others {
		kv, _, err := b.client.Get(ctx, b.Paths.Mapping(id), kvstore.Holding(lockOf(lock)))
		switch {
		case err != nil:
			return who, fmt.Errorf("looking up %s: %w", key, err)
		case kv != nil && string(kv.Value) != key.GetKey():
			delete(who.Others, id) // of a key that shares the path, or broken
			continue
		case kv != nil:
			r.Revision = kv.ModRevision
		}
		slices.Sort(r.Nodes)
		who.Others[id] = r
	}
	return who, nil
}
