package allocator

import (
	"context"
	"iter"
	"log/slog"
	"time"
)

type watcher struct{ a *Allocator }

func (w watcher) OnUpsert(id uint64, key Key) {
	a := w.a
	if err := a.options.accept(id, key); err != nil {
		a.refuse(id, key, err)
		return
	}
	a.mu.Lock()
	old, duplicate := a.core.upsert(id, key, time.Now())
	least := a.core.mappings.id(key.GetKey())
	a.mu.Unlock()
	ev := AllocatorEvent{Type: EventCreate, ID: id, Key: key}
	switch {
	case old != nil && old.GetKey() == key.GetKey():
		return
	case old != nil:
		ev.Type = EventModify
		a.jobs.Notify()
	}
	a.events.push(ev)
	if duplicate {
		a.options.metrics.duplicates.Inc()
		a.report(slog.LevelWarn, "A key has several IDs; the least is taken where none is in use", "key", key, "id", id, "least", least)
	}
}

func (a *Allocator) refuse(id uint64, key Key, why error) {
	a.with(func(c *core) { c.reject(id, key, time.Now()) })
	a.jobs.Notify()
	a.options.metrics.refusedOwn.Inc()
	a.report(slog.LevelWarn, "Refused a mapping of the own cluster; a previous one, if any, stays in use", "id", id, "key", key, "error", why)
}

func (w watcher) OnDelete(id uint64, _ Key) {
	a := w.a
	a.mu.Lock()
	old := a.core.delete(id, time.Now())
	a.mu.Unlock()
	a.jobs.Notify() // a job may be due
	if old != nil {
		a.events.push(AllocatorEvent{Type: EventDelete, ID: id, Key: old})
	}
}

func (w watcher) OnListDone() {
	w.a.events.push(AllocatorEvent{Type: EventListDone})
	close(w.a.listed)
}

func (w watcher) OnReferencesLost() {
	w.a.refreshAll()
	w.a.jobs.Notify()
}

// Get returns the ID of the key, or [NoID]. It takes the mappings that were seen, and asks the backend if they do not
// have the key.
func (a *Allocator) Get(ctx context.Context, key Key) (uint64, error) {
	return a.GetIfLocked(ctx, key, nil)
}

// GetIfLocked is Get, but a request to the backend needs the lock, and fails when the lock is not held.
func (a *Allocator) GetIfLocked(ctx context.Context, key Key, lock Lock) (uint64, error) {
	if id := a.cached(key.GetKey()); id != NoID {
		return id, nil
	}
	return a.ask(ctx, key, lock)
}

// GetNoCache returns the ID of the key from the backend, or [NoID].
func (a *Allocator) GetNoCache(ctx context.Context, key Key) (uint64, error) {
	return a.ask(ctx, key, nil)
}

// GetByID returns the key of the ID, or nil. It takes the mappings that were seen, and asks the backend if they do
// not have the ID.
func (a *Allocator) GetByID(ctx context.Context, id uint64) (Key, error) {
	if key := a.cachedKey(id); key != nil {
		return key, nil
	}
	return a.askByID(ctx, id)
}

// ask asks the backend for the ID of a key. A mapping that accept refuses counts as missing.
func (a *Allocator) ask(ctx context.Context, key Key, lock Lock) (uint64, error) {
	id, err := a.backend.Get(ctx, key, lock)
	if err != nil || id == NoID || a.options.accept(id, key) != nil {
		return NoID, err
	}
	return id, nil
}

// askByID asks the backend for the key of an ID, with the same rule.
func (a *Allocator) askByID(ctx context.Context, id uint64) (Key, error) {
	key, err := a.backend.GetByID(ctx, id)
	if err != nil || key == nil || a.options.accept(id, key) != nil {
		return nil, err
	}
	return key, nil
}

// GetIncludeRemoteCaches is Get, and looks into the remote caches before it asks the backend.
func (a *Allocator) GetIncludeRemoteCaches(ctx context.Context, key Key) (uint64, error) {
	text := key.GetKey()
	if id := a.cached(text); id != NoID {
		return id, nil
	}
	if id := a.remotes.id(text); id != NoID {
		return id, nil
	}
	return a.ask(ctx, key, nil)
}

// GetByIDIncludeRemoteCaches is GetByID, and looks into the remote caches before
// it asks the backend.
func (a *Allocator) GetByIDIncludeRemoteCaches(ctx context.Context, id uint64) (Key, error) {
	if key := a.cachedKey(id); key != nil {
		return key, nil
	}
	if key := a.remotes.key(id); key != nil {
		return key, nil
	}
	return a.askByID(ctx, id)
}

// ForEach iterates over the mappings that were seen: first those of the own cluster, then those of the remote caches
// in the order of their names, each by ID. When the iteration reaches a cache, it copies the mappings of that cache.
// All methods may be called while it runs.
func (a *Allocator) ForEach() iter.Seq2[uint64, Key] {
	return func(yield func(uint64, Key) bool) {
		a.mu.Lock()
		own := a.core.mappings.all()
		a.mu.Unlock()
		for id, key := range own {
			if !yield(id, key) {
				return
			}
		}
		a.remotes.forEach(yield)
	}
}

// cached returns the ID that the key has in use on this node, else the ID of its mapping, else NoID.
func (a *Allocator) cached(text string) uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if u := a.core.uses[text]; u != nil && u.refs > 0 {
		return u.id
	}
	return a.core.mappings.id(text)
}

// cachedKey returns the key that has the ID in use on this node, else the key of its mapping, else nil.
func (a *Allocator) cachedKey(id uint64) Key {
	a.mu.Lock()
	defer a.mu.Unlock()
	if u := a.core.byID[id]; u != nil {
		return u.key
	}
	return a.core.mappings.key(id)
}
