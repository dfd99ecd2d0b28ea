package kvbackend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// mapping is an entry below BASE/id.
type mapping struct {
	id  uint64
	key allocator.Key
}

// Watcher follows mappings and changes nothing. The cache of a remote cluster's identities needs it
// ([allocator.Allocator.WatchRemoteKVStore]).
type Watcher struct {
	// Client is the kvstore of the mappings. Its sessions may change.
	Client kvstore.Client
	// Paths and Keys are as in [Config].
	Paths wire.AllocationPaths
	Keys  allocator.Key
	// Log receives the entries that cannot be read, and Metrics count them. Both may be nil.
	Log     *slog.Logger
	Metrics *allocator.Metrics

	running atomic.Pointer[store.Watch[mapping]] // nil while nothing is followed
	init    sync.Once
	bad     *malformed // set with a Backend, or by init
}

// ListAndWatch reports the mappings to the handler, as described at [allocator.Backend].
func (w *Watcher) ListAndWatch(ctx context.Context, handler allocator.CacheMutations) error {
	log := cmp.Or(w.Log, slog.New(slog.DiscardHandler))
	w.init.Do(func() { w.bad = cmp.Or(w.bad, newMalformed(log, w.Metrics)) })
	var listed sync.Once // the handler gets only the end of the first list
	watch := store.NewWatch(store.Kind[mapping]{
		Resource: wire.Identities,
		Decode:   func(wire.Expect) store.Decode[mapping] { return w.decode },
		Apply: func(changes []store.Change[mapping]) {
			for _, ch := range changes {
				if ch.New == nil {
					handler.OnDelete(ch.Old.id, ch.Old.key)
				} else {
					handler.OnUpsert(ch.New.id, ch.New.key)
				}
			}
		},
		Listed: func() { listed.Do(handler.OnListDone) },
	}, log)
	w.running.Store(watch)
	defer w.running.Store(nil)
	return watch.Follow(ctx, store.Session{Client: w.Client, Prefix: w.Paths.Mappings()})
}

func (w *Watcher) decode(name string, value []byte) (*mapping, error) {
	m := new(mapping)
	var err error
	if m.id, err = allocator.MappingID(name); err == nil {
		m.key, err = readMapping(w.Keys, value)
	}
	if err != nil {
		w.bad.add(badMapping, w.Paths.Mappings()+name, value) // the watch logs it
		return nil, err
	}
	return m, nil
}

// ListAndWatch implements [allocator.Backend].
func (b *Backend) ListAndWatch(ctx context.Context, handler allocator.CacheMutations) error {
	b.client.OnLeaseExpired(b.Paths.References(), func([]string) { handler.OnReferencesLost() })
	defer b.client.OnLeaseExpired(b.Paths.References(), nil)
	return b.watcher.ListAndWatch(ctx, handler)
}

// behind is how long a watch may take to receive the mappings that existed when a lock was acquired.
const behind = 10 * time.Second

// CatchUp implements [allocator.Backend].
func (b *Backend) CatchUp(ctx context.Context, lock allocator.Lock) error {
	ctx, cancel := context.WithTimeout(ctx, behind)
	defer cancel()
	l, err := lockOf(lock), errors.New("no watch of the mappings runs")
	if watch := b.watcher.running.Load(); watch != nil {
		err = watch.Reach(ctx, l.At)
	}
	if err != nil {
		return fmt.Errorf("before anything is created under the lock %s: %w", l.Path, err)
	}
	return nil
}
