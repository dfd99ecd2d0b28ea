package hostile

import (
	"slices"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// TestAnHonestFakeIsSynced: without a broken rule, the fake works like a real etcd for an agent: lists in pages,
// changes, compaction, lost connections, another cluster ID.
func TestAnHonestFakeIsSynced(t *testing.T) {
	t.Parallel()
	w := newMesh(t)
	c, s := w.hostileCluster(t)
	w.join(c, s.endpoint())
	ready := func() {
		t.Helper()
		w.until(t, "the fake to be ready", func() bool { st, _ := w.status(c.name); return st.State == remotecluster.Ready && w.equal(c) })
	}
	ready()
	for n := range 20 {
		c.show(n, 2)
	}
	ready()
	s.compact()
	s.proxy.cut()
	c.show(0, 3)
	ready()
	s.breaks(nil)
	for n := range 20 {
		c.show(n, 4)
	}
	s.compact()
	ready()
	s.delete(wire.HeartbeatKey)
	s.become(77)
	s.proxy.cut()
	c.show(1, 5)
	ready()
}

// inGroups runs a subtest for each rule, with a limited number at a time, for a busy machine.
func inGroups(t *testing.T, all []*rule, f func(*testing.T, *rule)) {
	t.Helper()
	for group := range slices.Chunk(all, 12) {
		t.Run("group", func(t *testing.T) {
			for _, r := range group {
				t.Run(r.name, func(t *testing.T) { f(t, r) })
			}
		})
	}
}

// everyOther returns every n-th rule.
func everyOther(all []*rule, n int) (some []*rule) {
	for i := 0; i < len(all); i += n {
		some = append(some, all[i])
	}
	return some
}

// TestRules: a server that breaks one rule leads to the right code, is asked again later, and other clusters are not
// affected. Several of them are in the mesh at once.
func TestRules(t *testing.T) {
	w := newWorld(t)
	heap := watchHeap(t)
	tried := rules()
	if testing.Short() {
		tried = everyOther(tried, 15) // the mixture has all of them
	}
	inGroups(t, tried, func(t *testing.T, r *rule) {
		c, s := w.hostileCluster(t)
		s.breaks(r)
		w.join(c, s.endpoint())
		t.Cleanup(func() { w.leave(c) })
		writing(t, c)
		if r.flood == nil { // a flood would slow down all others, for as long as it lasts
			t.Parallel()
		}
		w.until(t, "the server to break its rule", func() bool { return s.broken.Load() > 0 })
		if len(r.want) > 0 {
			w.shows(t, c, r.want)
		}
		st, _ := w.status(c.name)
		t.Logf("shown: %v\nnow %s %s %q", w.codesOf(c), st.State, st.Code, st.LastError)
	})
	w.sentinel(t, 2)
	heap.check(t)
}

// writing changes the cluster until the end of the test, so that there are events.
func writing(tb testing.TB, c *cluster) {
	n := 1
	meanwhile(tb, 100*time.Millisecond, func() {
		n++
		c.show(n%60, n)
	})
}
