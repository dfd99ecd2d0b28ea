package allocator

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/time/rate"
)

// memoryBackend is the backend of one node. Before and after each call, fault may block or return an error: then the
// call was not made, or its response is lost.
type memoryBackend struct {
	store *memoryStore
	node  string

	applied int           // number of entries of the store's log; guarded by the store's mu
	moved   chan struct{} // closed and replaced when applied grows; guarded likewise
	blind   bool          // it cannot catch up, but claims that it has

	mu     sync.Mutex
	fault  func(ctx context.Context, op string, after bool) error
	counts map[string]int
}

func (s *memoryStore) backend(node string) *memoryBackend {
	return &memoryBackend{store: s, node: node, moved: make(chan struct{}), counts: make(map[string]int)}
}

func (b *memoryBackend) setFault(f func(ctx context.Context, op string, after bool) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault = f
}

func (b *memoryBackend) count(op string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.counts[op]
}

func (b *memoryBackend) failing(ctx context.Context, op string, after bool) error {
	b.mu.Lock()
	fault := b.fault
	if !after {
		b.counts[op]++
	}
	b.mu.Unlock()
	if fault == nil {
		return ctx.Err()
	}
	return cmp.Or(fault(ctx, op, after), ctx.Err())
}

func (b *memoryBackend) call(ctx context.Context, op string, lock Lock, f func(s *memoryStore) error) error {
	if err := b.failing(ctx, op, false); err != nil {
		return err
	}
	b.store.mu.Lock()
	err := b.store.holds(lock)
	if err == nil {
		err = f(b.store)
	}
	b.store.mu.Unlock()
	if after := b.failing(ctx, op, true); after != nil {
		return after
	}
	return err
}

func (b *memoryBackend) AllocateID(ctx context.Context, id uint64, key Key, lock Lock) (created bool, err error) {
	err = b.call(ctx, "allocate", lock, func(s *memoryStore) error {
		if _, taken := s.mappings[id]; !taken {
			s.set(id, key.GetKey())
			created = true
		}
		return nil
	})
	return created, err
}

func (b *memoryBackend) AcquireReference(ctx context.Context, id uint64, key Key, lock Lock) (held bool, err error) {
	err = b.call(ctx, "acquire", lock, func(s *memoryStore) error {
		if held = s.mappings[id] == key.GetKey(); held {
			s.refer(key.GetKey(), b.node, id)
		}
		return nil
	})
	return held, err
}

func (b *memoryBackend) Release(ctx context.Context, _ uint64, key Key) error {
	return b.call(ctx, "release", nil, func(s *memoryStore) error {
		delete(s.refs[key.GetKey()], b.node)
		return nil
	})
}

func (b *memoryBackend) UpdateKey(ctx context.Context, id uint64, key Key, _ bool, lock Lock) error {
	return b.call(ctx, "update", lock, func(s *memoryStore) error {
		text := key.GetKey()
		switch s.mappings[id] {
		case "":
			s.set(id, text)
		case text:
		default:
			return fmt.Errorf("the mapping says %s", s.mappings[id])
		}
		s.refer(text, b.node, id)
		return nil
	})
}

func (b *memoryBackend) Restore(ctx context.Context, id uint64, key, instead Key, lock Lock) (restored bool, err error) {
	err = b.call(ctx, "restore", lock, func(s *memoryStore) error {
		if restored = s.mappings[id] == instead.GetKey(); restored {
			s.set(id, key.GetKey())
		}
		return nil
	})
	return restored, err
}

func (b *memoryBackend) Get(ctx context.Context, key Key, lock Lock) (id uint64, err error) {
	err = b.call(ctx, "get", lock, func(s *memoryStore) error {
		for _, has := range s.refs[key.GetKey()] {
			id = has
		}
		return nil
	})
	return id, err
}

func (b *memoryBackend) GetByID(ctx context.Context, id uint64) (key Key, err error) {
	err = b.call(ctx, "get by ID", nil, func(s *memoryStore) error {
		if text := s.mappings[id]; text != "" {
			key = textKey(text)
		}
		return nil
	})
	return key, err
}

func (b *memoryBackend) Lock(ctx context.Context, key Key) (Lock, error) {
	if err := b.failing(ctx, "lock", false); err != nil {
		return nil, err
	}
	q := b.store.queue(key.GetKey())
	select {
	case q.held <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l := &memoryLock{store: b.store, text: key.GetKey()}
	b.store.mu.Lock()
	q.holder, l.at = l, len(b.store.log)
	b.store.mu.Unlock()
	if err := b.failing(ctx, "lock", true); err != nil {
		l.Unlock()
		return nil, err
	}
	return l, nil
}

func (b *memoryBackend) CatchUp(ctx context.Context, lock Lock) error {
	for {
		b.store.mu.Lock()
		applied, moved := b.applied, b.moved
		b.store.mu.Unlock()
		if b.blind || applied >= lock.(*memoryLock).at {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tell records how many entries of the log the handler has received.
func (b *memoryBackend) tell(applied int) {
	b.store.mu.Lock()
	defer b.store.mu.Unlock()
	b.applied = applied
	close(b.moved)
	b.moved = make(chan struct{})
}

func (b *memoryBackend) ListAndWatch(ctx context.Context, h CacheMutations) error {
	s := b.store
	s.mu.Lock()
	known := maps.Clone(s.mappings)
	applied := len(s.log)
	s.mu.Unlock()
	if err := b.failing(ctx, "list", false); err != nil {
		<-ctx.Done()
		return ctx.Err()
	}
	for _, id := range slices.Sorted(maps.Keys(known)) {
		h.OnUpsert(id, textKey(known[id]))
	}
	h.OnListDone()
	b.tell(applied)
	for {
		s.mu.Lock()
		news, changed := s.log[applied:], s.changed
		s.mu.Unlock()
		if len(news) == 0 {
			select {
			case <-changed:
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err := b.failing(ctx, "watch", false); ctx.Err() != nil {
			return cmp.Or(ctx.Err(), err)
		}
		for _, ev := range news {
			if ev.key != "" {
				h.OnUpsert(ev.id, textKey(ev.key))
			} else {
				h.OnDelete(ev.id, textKey(known[ev.id]))
			}
			known[ev.id] = ev.key
		}
		applied += len(news)
		b.tell(applied)
	}
}

func (b *memoryBackend) RunGC(_ context.Context, _ *rate.Limiter, stale StaleIDs, from, to uint64) (StaleIDs, GCStats, error) {
	return StaleIDs{from: stale[from] + 1, to: 0}, GCStats{Alive: 3, Deleted: 4}, nil
}

func (b *memoryBackend) RunLocksGC(_ context.Context, stale StaleLocks) (StaleLocks, error) {
	return StaleLocks{"path": {Key: "path/1", Revision: stale["path"].Revision + 1}}, nil
}

func (b *memoryBackend) ListIDs(context.Context) ([]uint64, error) {
	b.store.mu.Lock()
	defer b.store.mu.Unlock()
	return slices.Sorted(maps.Keys(b.store.mappings)), nil
}

func (b *memoryBackend) DeleteID(ctx context.Context, id uint64) (deleted bool, err error) {
	err = b.call(ctx, "delete", nil, func(s *memoryStore) error {
		text, is := s.mappings[id]
		for _, has := range s.refs[text] {
			if has == id {
				return ErrIDInUse
			}
		}
		if deleted = is; is {
			s.set(id, "")
		}
		return nil
	})
	return deleted, err
}

func (b *memoryBackend) DeleteAllKeys(ctx context.Context) error {
	return b.call(ctx, "delete all", nil, func(s *memoryStore) error {
		for id := range s.mappings {
			s.set(id, "")
		}
		clear(s.refs)
		return nil
	})
}

func (b *memoryBackend) Status() string { return "in memory" }
