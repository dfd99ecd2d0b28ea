package allocator

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// RemoteMappings reads the mappings of another cluster. A [Backend] implements it.
type RemoteMappings interface {
	ListAndWatch(ctx context.Context, handler CacheMutations) error
}

// RemoteCache is a read-only view of another cluster's mappings, which the lookups of an
// [Allocator] include. Its methods may be called by any goroutine, Watch once.
type RemoteCache struct {
	name   string
	source RemoteMappings
	accept func(id uint64, key Key) error
	onSync func()
	events *events // nil without events
	owner  *Allocator

	synced  chan struct{} // closed when the first list is complete
	watched atomic.Bool
}

// RemoteOption changes a [RemoteCache].
type RemoteOption func(*RemoteCache)

// OnSync sets a function that is called once, when the first list of the cache is complete and the lookups have it,
// unless the cache was replaced or closed before. The goroutine of Watch calls f and waits until it returns; f may
// use the allocator.
func OnSync(f func()) RemoteOption { return func(rc *RemoteCache) { rc.onSync = f } }

// RemoteEvents makes the allocator also send events of the cache's mappings on [Allocator.GetEvents], if it was made
// with [WithEvents]. There is an event for each change of the mappings that lookups find under the cache's name, and
// one for its first complete list. The field Cluster has that name. A cache that replaces another one sends only the
// differences. [RemoteCache.Close] sends a deletion of each mapping.
func RemoteEvents() RemoteOption { return func(rc *RemoteCache) { rc.events = rc.owner.events } }

// remotes are the mappings of other clusters, by name. They belong to the name: a cache that replaces another one
// continues with its mappings.
type remotes struct {
	mu     sync.RWMutex
	byName map[string]*remote
	order  []string // the names, sorted
}

// remote has the mappings of a cluster. No ID is in both fields.
type remote struct {
	cache    *RemoteCache // the latest; only it may change the mappings
	mappings mappings     // the mappings that it has received
	before   mappings     // the mappings of earlier caches; empty once the list of the latest one is complete
}

func (r *remote) id(text string) uint64 { return cmp.Or(r.mappings.id(text), r.before.id(text)) }

func (r *remote) key(id uint64) Key {
	if key := r.mappings.key(id); key != nil {
		return key
	}
	return r.before.key(id)
}

// all iterates like [mappings.all].
func (r *remote) all() iter.Seq2[uint64, Key] {
	both := maps.Clone(r.before.keys)
	maps.Copy(both, r.mappings.keys)
	return byID(both)
}

func (r *remote) replaced(by *RemoteCache) {
	for id, key := range r.mappings.keys {
		r.before.set(id, key)
	}
	r.cache, r.mappings = by, newMappings()
}

// WatchRemoteKVStore adds the mappings of another cluster to the lookups. [RemoteCache.Watch] receives them. A cache
// of the same name is replaced. Its mappings stay until the first list of the new cache is complete; then those that
// are not in the list are removed. An incomplete list removes nothing: its mappings take precedence, and the others
// stay as they were, as for any disconnected cluster. If the list is not complete within the list timeout, that is
// logged. [RemoteCache.Close] withdraws everything.
//
// accept refuses a mapping with an error, such as one whose ID is not in that cluster's range or whose labels name
// another cluster (wire.md §1.6). Then the previous mapping stays in force. A nil accept refuses nothing.
func (a *Allocator) WatchRemoteKVStore(name string, source RemoteMappings, accept func(id uint64, key Key) error, opts ...RemoteOption) *RemoteCache {
	if accept == nil {
		accept = func(uint64, Key) error { return nil }
	}
	rc := &RemoteCache{name: name, source: source, accept: accept, onSync: func() {}, owner: a, synced: make(chan struct{})}
	for _, o := range opts {
		o(rc)
	}
	r := &a.remotes
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.byName[name]; known != nil {
		known.replaced(rc)
		return rc
	}
	if r.byName == nil {
		r.byName = make(map[string]*remote)
	}
	r.byName[name] = &remote{cache: rc, mappings: newMappings(), before: newMappings()}
	r.order = slices.Sorted(maps.Keys(r.byName))
	return rc
}

// Watch follows the mappings until ctx ends, and returns its error. The mappings in the cache stay.
func (rc *RemoteCache) Watch(ctx context.Context) error {
	if rc.watched.Swap(true) {
		return errors.New("a remote cache is watched only once; replace it to connect again")
	}
	defer time.AfterFunc(rc.owner.options.listTimeout, rc.late).Stop()
	return rc.source.ListAndWatch(ctx, remoteWatcher{rc})
}

func (rc *RemoteCache) late() {
	r := &rc.owner.remotes
	r.mu.RLock()
	known := rc.current()
	if known == nil || rc.Synced() {
		r.mu.RUnlock()
		return
	}
	listed, before := len(known.mappings.keys), len(known.before.keys)
	r.mu.RUnlock()
	rc.owner.report(slog.LevelWarn, "The list of a remote cluster's mappings is not complete; those that were known before are kept until it is",
		"cluster", rc.name, "after", rc.owner.options.listTimeout, "listed", listed, "before", before)
}

// Synced reports whether the first list is complete.
func (rc *RemoteCache) Synced() bool { return isClosed(rc.synced) }

// NumEntries returns the number of mappings under the cache's name. It is 0 after the cache was replaced or closed.
func (rc *RemoteCache) NumEntries() int {
	r := &rc.owner.remotes
	r.mu.RLock()
	defer r.mu.RUnlock()
	if known := rc.current(); known != nil {
		return len(known.mappings.keys) + len(known.before.keys)
	}
	return 0
}

// Close withdraws all mappings under the cache's name, unless the cache was replaced. It does not end Watch, which
// changes nothing from then on.
func (rc *RemoteCache) Close() {
	r := &rc.owner.remotes
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := rc.current(); known != nil {
		rc.deleted(known.all())
		delete(r.byName, rc.name)
		r.order = slices.Sorted(maps.Keys(r.byName))
	}
}

// current returns the mappings that the cache may change, or nil when it is not the latest cache of its name; the
// caller holds the lock.
func (rc *RemoteCache) current() *remote {
	if known := rc.owner.remotes.byName[rc.name]; known != nil && known.cache == rc {
		return known
	}
	return nil
}

// deleted sends events that mappings are gone; the caller holds the lock.
func (rc *RemoteCache) deleted(mappings iter.Seq2[uint64, Key]) {
	for id, key := range mappings {
		rc.push(EventDelete, id, key)
	}
}

func (rc *RemoteCache) push(what EventType, id uint64, key Key) {
	rc.events.push(AllocatorEvent{Type: what, ID: id, Key: key, Cluster: rc.name})
}

type remoteWatcher struct{ rc *RemoteCache }

func (w remoteWatcher) OnUpsert(id uint64, key Key) {
	rc, a := w.rc, w.rc.owner
	if err := rc.accept(id, key); err != nil {
		a.options.metrics.refusedRemote.Inc()
		a.report(slog.LevelWarn, "Refused a mapping of a remote cluster", "cluster", rc.name, "id", id, "key", key, "error", err)
		return
	}
	a.remotes.mu.Lock()
	defer a.remotes.mu.Unlock()
	known := rc.current()
	if known == nil {
		return
	}
	old := known.key(id)
	known.before.delete(id)
	known.mappings.set(id, key)
	switch {
	case old == nil:
		rc.push(EventCreate, id, key)
	case old.GetKey() != key.GetKey():
		rc.push(EventModify, id, key)
	}
}

func (w remoteWatcher) OnDelete(id uint64, _ Key) {
	r := &w.rc.owner.remotes
	r.mu.Lock()
	defer r.mu.Unlock()
	known := w.rc.current()
	if known == nil {
		return
	}
	if old := known.key(id); old != nil {
		w.rc.push(EventDelete, id, old)
	}
	known.before.delete(id)
	known.mappings.delete(id)
}

func (w remoteWatcher) OnListDone() {
	if w.listed() {
		w.rc.onSync()
	}
}

// listed removes the mappings of earlier caches, and reports whether the cache is still the latest of its name.
func (w remoteWatcher) listed() bool {
	rc, r := w.rc, &w.rc.owner.remotes
	r.mu.Lock()
	defer r.mu.Unlock()
	defer close(rc.synced)
	known := rc.current()
	if known != nil {
		rc.deleted(byID(known.before.keys))
		known.before = newMappings()
		rc.push(EventListDone, NoID, nil)
	}
	return known != nil
}

// OnReferencesLost does nothing: a remote cluster's mappings are not used here.
func (remoteWatcher) OnReferencesLost() {}

func (r *remotes) id(text string) uint64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, name := range r.order {
		if id := r.byName[name].id(text); id != NoID {
			return id
		}
	}
	return NoID
}

func (r *remotes) key(id uint64) Key {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, name := range r.order {
		if key := r.byName[name].key(id); key != nil {
			return key
		}
	}
	return nil
}

// all iterates over the mappings under a name.
func (r *remotes) all(name string) iter.Seq2[uint64, Key] {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if known := r.byName[name]; known != nil {
		return known.all()
	}
	return func(func(uint64, Key) bool) {}
}

// forEach calls yield for all mappings, without the lock.
func (r *remotes) forEach(yield func(uint64, Key) bool) {
	r.mu.RLock()
	names := r.order
	r.mu.RUnlock()
	for _, name := range names {
		for id, key := range r.all(name) {
			if !yield(id, key) {
				return
			}
		}
	}
}
