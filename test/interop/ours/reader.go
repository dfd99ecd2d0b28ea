package ours

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// Reader follows all that a cluster publishes with this project's stores, also what
// its agent does not show. It does not wait for canaries.
type Reader struct {
	watch map[wire.Resource]*store.Watch[model.Objects]

	mu      sync.Mutex
	objects map[string]*model.Objects // by resource and name; one object each
}

// Read reads a cluster from the etcd of a client file, the cluster's own or one that
// has a copy, until the end of the test.
func Read(t testing.TB, file string, e wire.Expect, cached bool) *Reader {
	r := &Reader{watch: map[wire.Resource]*store.Watch[model.Objects]{}, objects: map[string]*model.Objects{}}
	client := connect(file)
	run := untilTheEnd(t, client)
	run(client.Run)
	for _, res := range wire.Resources() {
		prefix := res.Prefix(e.Cluster, cached)
		w := store.NewWatch(store.Kind[model.Objects]{
			Resource: res, Decode: decoder(prefix, cached),
			Apply: func(changes []store.Change[model.Objects]) { r.apply(res, changes) },
		}, slog.New(slog.DiscardHandler))
		r.watch[res] = w
		run(func(ctx context.Context) error {
			return w.Follow(ctx, store.Session{Client: client, Prefix: prefix, Expect: e})
		})
	}
	return r
}

// decoder decodes one entry.
func decoder(prefix string, cached bool) func(wire.Expect) store.Decode[model.Objects] {
	return func(e wire.Expect) store.Decode[model.Objects] {
		return func(name string, value []byte) (*model.Objects, error) {
			var o model.Objects
			return &o, decode(e, cached, model.KV{Key: prefix + name, Value: value}, &o)
		}
	}
}

func (r *Reader) apply(res wire.Resource, changes []store.Change[model.Objects]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range changes {
		if c.New == nil {
			delete(r.objects, string(res)+" "+c.Name)
			continue
		}
		r.objects[string(res)+" "+c.Name] = c.New
	}
}

// View returns the known objects, and the number of refused entries.
func (r *Reader) View() (model.Objects, int) {
	refused := 0
	for _, w := range r.watch {
		refused += w.Status().Rejected
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var all model.Objects
	for _, o := range r.objects {
		all.Add(*o)
	}
	return all, refused
}
