package kvbackend

import (
	"context"
	"fmt"
	"slices"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

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
