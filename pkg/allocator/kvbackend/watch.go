package kvbackend

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// mapping is an entry below id.
type mapping struct {
	id  uint64
	key allocator.Key
}

// Watcher follows mappings and changes nothing: what the cache of a remote
// cluster's identities needs ([allocator.Allocator.WatchRemoteKVStore]).
type Watcher struct {
	// Client is where they are. It may be one whose sessions change.
	Client kvstore.Client
	// Paths and Keys are as in [Config].
	Paths wire.AllocationPaths
	Keys  allocator.Key
	// Log is told what cannot be read; nil is nobody. Metrics count it; likewise.
	Log     *slog.Logger
	Metrics *allocator.Metrics

	mu      sync.Mutex
	running *store.Watch[mapping] // guarded by mu; nil while nothing is followed
	bad     *malformed            // set with a Backend, or by the first ListAndWatch under mu
}

// ListAndWatch tells the handler of the mappings, as [allocator.Backend] says.
func (w *Watcher) ListAndWatch(ctx context.Context, handler allocator.CacheMutations) error {
	log := w.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	w.mu.Lock()
	if w.bad == nil {
		w.bad = newMalformed(log, w.Metrics)
	}
	w.mu.Unlock()
	var listed sync.Once // a list after a break is none for the handler
	watch := store.NewWatch(store.Kind[mapping]{
		Resource: wire.Identities,
		Decode:   w.decode,
		Apply:    func(changes []store.Change[mapping]) { tell(handler, changes) },
		Listed:   func() { listed.Do(handler.OnListDone) },
	}, log)
	w.run(watch)
	defer w.run(nil)
	return watch.Follow(ctx, store.Session{Client: w.Client, Prefix: w.Paths.Mappings()})
}

func (w *Watcher) decode(wire.Expect) store.Decode[mapping] {
	return func(name string, value []byte) (*mapping, error) {
		m, err := w.read(name, value)
		if err != nil {
			w.bad.count(badMapping, w.Paths.Mappings()+name, value) // the watch logs it
		}
		return m, err
	}
}

func (w *Watcher) read(name string, value []byte) (*mapping, error) {
	id, err := mappingID(name)
	if err != nil {
		return nil, err
	}
	key, err := readMapping(w.Keys, value)
	if err != nil {
		return nil, err
	}
	return &mapping{id, key}, nil
}

func tell(handler allocator.CacheMutations, changes []store.Change[mapping]) {
	for _, ch := range changes {
		switch {
		case ch.New == nil:
			handler.OnDelete(ch.Old.id, ch.Old.key)
		default:
			handler.OnUpsert(ch.New.id, ch.New.key)
		}
	}
}

func (w *Watcher) run(watch *store.Watch[mapping]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = watch
}

// reach waits until the handler has been told of everything up to the position.
func (w *Watcher) reach(ctx context.Context, at kvstore.Position) error {
	w.mu.Lock()
	watch := w.running
	w.mu.Unlock()
	if watch == nil {
		return errors.New("nobody follows the mappings")
	}
	return watch.Reach(ctx, at)
}

// ListAndWatch implements [allocator.Backend].
func (b *Backend) ListAndWatch(ctx context.Context, handler allocator.CacheMutations) error {
	b.client.OnLeaseExpired(b.paths.References(), func([]string) { handler.OnReferencesLost() })
	defer b.client.OnLeaseExpired(b.paths.References(), nil)
	return b.watcher.ListAndWatch(ctx, handler)
}

// behind is how long a watch may take to bring what was there when a lock was
// acquired.
const behind = 10 * time.Second

// CatchUp implements [allocator.Backend].
func (b *Backend) CatchUp(ctx context.Context, lock allocator.Lock) error {
	ctx, cancel := context.WithTimeout(ctx, behind)
	defer cancel()
	l := lockOf(lock)
	if err := b.watcher.reach(ctx, l.At); err != nil {
		return fmt.Errorf("before anything is created under the lock %s: %w", l.Path, err)
	}
	return nil
}
