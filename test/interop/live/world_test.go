package live

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// world has the expected objects of a cluster, by kind and number.
type world struct {
	m   maker
	all map[model.Kind]map[int]model.Objects
	n   int // numbers are below
}

func newWorld(m maker, n int) *world {
	w := &world{m: m, all: map[model.Kind]map[int]model.Objects{}, n: n}
	for _, kind := range model.Published() {
		w.all[kind] = map[int]model.Objects{}
		for i := range n {
			w.all[kind][i] = m.object(kind, i)
		}
	}
	return w
}

// objects returns the expected objects, by kind and number.
func (w *world) objects() model.Objects {
	var all model.Objects
	for _, kind := range model.Published() {
		for _, i := range slices.Sorted(maps.Keys(w.all[kind])) {
			all.Add(w.all[kind][i])
		}
	}
	return all
}

// follow waits until a reader sees the objects, changes and deletes a part, and waits
// again. It returns the created objects.
func (w *world) follow(t *testing.T, p publisher, r reader, limit time.Duration) (created model.Objects) {
	t.Helper()
	created = w.objects()
	r.see(t, "what was created", limit, created)
	changed, deleted := w.churn(w.n/4, w.n/4)
	p.Put(t, changed)
	p.Delete(t, deleted)
	r.see(t, "what was changed and deleted", limit, w.objects())
	return created
}

// churn makes new versions of this many objects of each kind, some of which do not exist yet, and deletes others.
func (w *world) churn(change, remove int) (changed, deleted model.Objects) {
	for _, kind := range model.Published() {
		numbers := w.m.some(w.n, change+remove)
		for _, i := range numbers[:change] {
			w.all[kind][i] = w.m.object(kind, i)
			changed.Add(w.all[kind][i])
		}
		for _, i := range numbers[change:] {
			if o, ok := w.all[kind][i]; ok {
				deleted.Add(o)
				delete(w.all[kind], i)
			}
		}
	}
	return changed, deleted
}
