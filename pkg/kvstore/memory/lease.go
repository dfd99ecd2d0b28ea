package memory

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// LeaseTTL makes a Store's sessions ask about their leases three times a
// second. The server itself ends none by the clock.
const LeaseTTL = time.Second

// WatchNow implements [kvstore.Engine].
func (m *Store) WatchNow(ctx context.Context, key string, after kvstore.Position) (kvstore.Stream, error) {
	return m.Watch(ctx, key, after)
}

// Grant implements [kvstore.Lessor].
func (m *Store) Grant(ctx context.Context, ttl time.Duration) (id int64, lasts time.Duration, err error) {
	_, err = m.operate(ctx, "grant lease", "", func(s *contents) error {
		m.addr.nextLease++
		id = m.addr.nextLease
		s.leases[id] = true
		return nil
	})
	return id, ttl, err
}

// KeepAlive implements [kvstore.Lessor].
func (m *Store) KeepAlive(ctx context.Context, ids []int64) (map[int64]bool, error) {
	alive := make(map[int64]bool)
	_, err := m.operate(ctx, "keep leases alive", "", func(s *contents) error {
		for _, id := range ids {
			alive[id] = s.leases[id]
		}
		return nil
	})
	return alive, err
}

// Revoke implements [kvstore.Lessor]. It also serves a session that is over.
func (m *Store) Revoke(_ context.Context, id int64) error {
	m.addr.mu.Lock()
	defer m.addr.mu.Unlock()
	if m.addr.store.id == m.pinned {
		m.addr.revoke(id)
	}
	return nil
}

// ExpireLeases ends all leases of all sessions, as time does, and deletes the
// keys that are tied to them.
func (m *Store) ExpireLeases() {
	m.addr.mu.Lock()
	defer m.addr.mu.Unlock()
	m.addr.revoke(slices.Collect(maps.Keys(m.addr.store.leases))...)
}

// revoke ends leases; the lock is held.
func (a *address) revoke(ids ...int64) {
	for _, id := range ids {
		delete(a.store.leases, id)
	}
	a.store.write(a.store.deletions(func(kv kvstore.KeyValue) bool { return slices.Contains(ids, kv.Lease) }))
	a.changed()
}
