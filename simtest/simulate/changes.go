package simulate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"

	"github.com/mesh-agent/mesh-agent/pkg/mesh"
	"github.com/mesh-agent/mesh-agent/pkg/view"
)

// reader follows the changes of a view as a client does, breaks off now and then, and continues with the token of its last
// event. It judges the guarantees of the stream, which are those of etcd's watches: changes have one order, each comes
// once, none is missing, also not where a stream continues.
type reader struct {
	whose string
	m     *mesh.Mesh
	rng   *rand.Rand
	most  int // events of a stream before it breaks off

	mu       sync.Mutex // guards everything below
	token    string
	position uint64
	complete map[view.Kind]bool // kinds whose state was sent
	objects  map[view.Kind]map[string]any
	// since has the objects of which the present stream has sent an event, by kind and key. Of the others it may have
	// left out a change, before it was cut off, in favour of a newer one.
	since map[string]bool
}

func newReader(whose string, m *mesh.Mesh, rng *rand.Rand, most int) *reader {
	r := &reader{whose: whose, m: m, rng: rng, most: most}
	r.reset()
	return r
}

// kindsRead are the kinds whose objects are shared, so that an event can be compared with the one before.
func kindsRead() []view.Kind {
	return []view.Kind{view.Nodes, view.Services, view.ServiceExports, view.Identities, view.IPs}
}

func (r *reader) reset() {
	r.complete, r.objects = make(map[view.Kind]bool), make(map[view.Kind]map[string]any)
	for _, k := range kindsRead() {
		r.objects[k] = make(map[string]any)
	}
}

// run reads until ctx ends. The error is a guarantee that does not hold.
func (r *reader) run(ctx context.Context) error {
	for ctx.Err() == nil {
		some, cancel := context.WithCancel(ctx)
		left := 1 + r.rng.IntN(r.most)
		r.mu.Lock()
		r.since = make(map[string]bool)
		r.mu.Unlock()
		for e, err := range r.m.Changes(some, r.token, kindsRead()...) {
			if err != nil {
				if ended := new(view.Ended); ctx.Err() == nil && some.Err() == nil && !errors.As(err, ended) {
					cancel()
					return fmt.Errorf("the changes of %s ended with %w", r.whose, err)
				}
				break
			}
			if wrong := r.event(e); wrong != "" {
				cancel()
				return fmt.Errorf("the changes of %s: %s of %s at %d: %s", r.whose, e.Type, e.Kind, e.Position, wrong)
			}
			if left--; left == 0 {
				cancel()
			}
		}
		cancel()
	}
	return nil
}

// event takes an event, and returns which guarantee does not hold; empty: all hold.
func (r *reader) event(e view.Event) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.token = e.Token()
	switch e.Type {
	case view.Reset:
		r.reset()
	case view.Synced:
		r.complete[e.Kind] = true
	case view.Upsert, view.Delete:
		return r.change(e)
	}
	return ""
}

func (r *reader) change(e view.Event) string {
	have, key := r.objects[e.Kind], r.m.Key(e.Kind, e.Object)
	before, is := have[key]
	sent := r.since[string(e.Kind)+" "+key]
	r.since[string(e.Kind)+" "+key] = true
	switch {
	case r.complete[e.Kind] && e.Position < r.position:
		return fmt.Sprintf("it comes after one at %d", r.position)
	case is != (e.Before != nil), is && sent && before != e.Before:
		return fmt.Sprintf("%s was %v before, and the reader has %v", key, e.Before, before)
	case e.Type == view.Delete && !is:
		return key + " was not there"
	case e.Type == view.Upsert && before == e.Object && e.Kind != view.IPs: // the other claims on an address may have changed
		return key + " has not changed"
	}
	if r.complete[e.Kind] {
		r.position = e.Position
	}
	if e.Type == view.Delete {
		delete(have, key)
	} else {
		have[key] = e.Object
	}
	return ""
}

// difference returns how the reader's objects differ from those of the mesh; empty when they do not.
func (r *reader) difference() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := make(map[view.Kind]map[string]any)
	for _, k := range kindsRead() {
		now[k] = make(map[string]any)
	}
	add := func(k view.Kind, object any) { now[k][r.m.Key(k, object)] = object }
	t := r.m.Tables
	txn := t.DB.ReadTxn()
	for name, table := range t.Shown() {
		if k := view.Kind(name); now[k] != nil {
			for o := range table.All(txn) {
				add(k, o)
			}
		}
	}
	for o := range t.IPs.Snapshot().From(netip.Prefix{}) {
		add(view.IPs, o)
	}
	for _, k := range kindsRead() {
		for key, object := range now[k] {
			if r.objects[k][key] != object {
				return fmt.Sprintf("the changes of %s say that the %s have %v, and they have %v", r.whose, k, r.objects[k][key], object)
			}
		}
		if len(now[k]) != len(r.objects[k]) {
			return fmt.Sprintf("the changes of %s say that there are %d %s, and there are %d", r.whose, len(r.objects[k]), k, len(now[k]))
		}
	}
	return ""
}
