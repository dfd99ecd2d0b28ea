package kvstore

import (
	"context"
	"slices"
	"strings"
	"time"
)

// memLeaseTTL makes a Memory's sessions ask about their leases three times a
// second. The server itself ends none by the clock.
const memLeaseTTL = time.Second

// WatchNow implements [Engine].
func (m *Memory) WatchNow(ctx context.Context, key string, after Position) (Stream, error) {
	return m.Watch(ctx, key, after)
}

// Grant implements [Lessor].
func (m *Memory) Grant(ctx context.Context, ttl time.Duration) (id int64, lasts time.Duration, err error) {
	_, err = m.operate(ctx, "grant lease", "", func(s *memStore) error {
		m.addr.nextLease++
		id = m.addr.nextLease
		s.leases[id] = true
		return nil
	})
	return id, ttl, err
}

// KeepAlive implements [Lessor].
func (m *Memory) KeepAlive(ctx context.Context, ids []int64) (map[int64]bool, error) {
	alive := make(map[int64]bool)
	_, err := m.operate(ctx, "keep leases alive", "", func(s *memStore) error {
		for _, id := range ids {
			alive[id] = s.leases[id]
		}
		return nil
	})
	return alive, err
}

// Revoke implements [Lessor]. It also serves a session that is over.
func (m *Memory) Revoke(_ context.Context, id int64) error {
	m.addr.mu.Lock()
	defer m.addr.mu.Unlock()
	if m.addr.store.id == m.pinned {
		m.addr.revoke([]int64{id})
	}
	return nil
}

// ExpireLeases ends all leases of all sessions, as time does, and deletes the
// keys that are tied to them.
func (m *Memory) ExpireLeases() {
	m.addr.mu.Lock()
	defer m.addr.mu.Unlock()
	var ids []int64
	for id := range m.addr.store.leases {
		ids = append(ids, id)
	}
	m.addr.revoke(ids)
}

// revoke ends leases. The lock is held.
func (a *memAddress) revoke(ids []int64) {
	var events []Event
	for _, id := range ids {
		delete(a.store.leases, id)
	}
	for key, kv := range a.store.items {
		if slices.Contains(ids, kv.Lease) {
			events = append(events, Event{Type: EventDelete, KeyValue: KeyValue{Key: []byte(key)}})
		}
	}
	slices.SortFunc(events, func(a, b Event) int { return strings.Compare(string(a.Key), string(b.Key)) })
	a.store.write(events)
	a.changed()
}
