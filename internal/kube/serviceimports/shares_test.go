package serviceimports

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mesh-agent/mesh-agent/internal/kube/mcs"
	"github.com/mesh-agent/mesh-agent/internal/kube/reconcile"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func TestSizesOfShares(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ all, clusters, ofCluster, ofNamespace int }{
		{4000, 0, 1000, 500}, {4000, 1, 1000, 500}, {4000, 4, 1000, 500}, {4000, 5, 800, 400}, {4000, 255, 15, 7}, {3, 10, 1, 1},
	} {
		s := newShares("c1", test.all)
		s.setClusters(test.clusters)
		if s.ofCluster() != test.ofCluster || s.ofNamespace() != test.ofNamespace {
			t.Errorf("%+v: %d, %d", test, s.ofCluster(), s.ofNamespace())
		}
	}
}

// sharing is a model of a controller's use of shares: it knows the exports of each cluster, and the imports.
type sharing struct {
	*shares
	exporters map[string]map[string]bool // by name
}

func newSharing(clusters int) *sharing {
	s := &sharing{newShares("own", 64), make(map[string]map[string]bool)}
	s.setClusters(clusters)
	return s
}

// round does the work of [term.plan] for all names: existing imports first, then new ones, in any order.
func (s *sharing) round(order []string) {
	slices.SortStableFunc(order, func(a, b string) int { return len(s.counted[b]) - len(s.counted[a]) })
	for _, name := range order {
		clusters := slices.Sorted(maps.Keys(s.exporters[name]))
		switch is := s.counted[name]; {
		case len(clusters) == 0:
			s.count(name, "")
		case s.exporters[name][is]:
		default:
			s.count(name, s.choose(name, clusters))
		}
	}
}

// restart is another process, which finds the imports that there are.
func (s *sharing) restart(order []string) *sharing {
	next := newSharing(s.clusters)
	next.exporters = s.exporters
	for _, name := range order {
		next.count(name, s.counted[name])
	}
	return next
}

// For any sequence of exports, withdrawals and restarts: two hostile clusters export any services, also those that
// others export. No cluster ever has more than its share, and each of the friendly clusters, which exports no more than
// that, has all of its services imported after each round.
func TestNoClusterTakesTheShareOfAnother(t *testing.T) {
	t.Parallel()
	friends := []string{"friend-a", "friend-b"}
	rapid.Check(t, func(t *rapid.T) {
		s := newSharing(4) // of 64, 16 each, 8 of a namespace
		var names []string
		for _, namespace := range []string{"a", "shop", "z"} {
			for i := range 30 {
				names = append(names, fmt.Sprintf("%s/s%02d", namespace, i))
				s.exporters[names[len(names)-1]] = make(map[string]bool)
			}
		}
		exports := func(cluster, namespace string) (n int) {
			for name, by := range s.exporters {
				if by[cluster] && strings.HasPrefix(name, namespace) {
					n++
				}
			}
			return n
		}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			name := rapid.SampledFrom(names).Draw(t, "name")
			namespace, _, _ := strings.Cut(name, "/")
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0: // everything at once
				hostile := rapid.SampledFrom([]string{"a-hostile", "z-hostile"}).Draw(t, "hostile")
				for _, name := range names {
					s.exporters[name][hostile] = true
				}
			case 1:
				hostile := rapid.SampledFrom([]string{"a-hostile", "z-hostile"}).Draw(t, "hostile")
				for _, name := range names {
					delete(s.exporters[name], hostile)
				}
			case 2:
				if friend := rapid.SampledFrom(friends).Draw(t, "friend"); exports(friend, "") < s.ofCluster() && exports(friend, namespace+"/") < s.ofNamespace() {
					s.exporters[name][friend] = true
				}
			case 3:
				delete(s.exporters[name], rapid.SampledFrom(friends).Draw(t, "friend"))
			default:
				s = s.restart(names)
			}
			seed := rapid.Uint64().Draw(t, "seed")
			rand.New(rand.NewPCG(seed, 0)).Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			s.round(slices.Clone(names))
			for of, n := range s.held {
				bound := s.all
				switch {
				case of.namespace != "":
					bound = s.ofNamespace()
				case of.cluster != "":
					bound = s.ofCluster()
				}
				if n > bound {
					t.Fatalf("%v has %d of %d", of, n, bound)
				}
			}
			for name, by := range s.exporters {
				for _, friend := range friends {
					if by[friend] && s.counted[name] == "" {
						t.Fatalf("%s of %s is not imported: %v", name, friend, s.held)
					}
				}
			}
		}
	})
}

// exportMany lets a cluster export so many services of a namespace.
func (w *world) exportMany(cluster, namespace, name string, n int) {
	for i := range n {
		w.remote(cluster, -54*365*24*3600, func(e *wire.ServiceExport) { e.Namespace, e.Name = namespace, fmt.Sprintf("%s-%04d", name, i) })
	}
}

// importsOf are the services that are imported with a cluster among their exporters.
func (w *world) importsOf(cluster string) (names []string) {
	for im := range w.cluster.ServiceImports.Table().All(w.db.ReadTxn()) {
		if slices.Contains(im.Status.Clusters, local.ClusterStatus{Cluster: cluster}) {
			names = append(names, local.Name(im))
		}
	}
	return names
}

// One remote exports everything first, with the first names. The others have their shares, before and after a restart,
// and existing imports stay.
func TestOneRemoteDoesNotTakeAllImports(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a-hostile", "c2", "c3")
	w.namespace("shop")
	w.namespace("team")
	w.exportMany("a-hostile", "shop", "aaa", 40)
	w.exportMany("a-hostile", "team", "aaa", 40)
	bounded := func(p *Params) { p.MaxImports = 32 } // 8 each, 4 of a namespace
	stop := w.run(bounded)
	has := func(what string, hostile, friend int) {
		t.Helper()
		waittest.Until(t, what, func() bool { return len(w.importsOf("a-hostile")) == hostile && len(w.importsOf("c2")) == friend }, func() string {
			return fmt.Sprint(w.importsOf("a-hostile"), w.importsOf("c2"), w.Wrong())
		})
	}
	has("its share", 8, 0)
	w.exportMany("c2", "shop", "zzz", 4)
	has("the friend that comes later", 8, 4)
	before := w.importsOf("a-hostile")
	stop()
	w.exportMany("a-hostile", "shop", "aa", 40) // names before those that are imported
	w.exportMany("c2", "team", "zzz", 4)
	w.run(bounded)
	has("after a restart", 8, 8)
	if after := w.importsOf("a-hostile"); !slices.Equal(before, after) {
		t.Errorf("imported %q, then %q", before, after)
	}
	// It joins the exports of the friend, and withdraws: the friend's imports stay as they are.
	for _, name := range w.importsOf("c2") {
		w.remote("a-hostile", -54*365*24*3600, func(e *wire.ServiceExport) {
			e.Namespace, e.Name, _ = strings.Cut(name, "/")
			e.Type = wire.ServiceExportHeadless
		})
	}
	has("it joins the friend", 16, 8)
	for im := range w.cluster.ServiceImports.Table().All(w.db.ReadTxn()) {
		if strings.Contains(im.Name, "zzz") && (im.Spec.Type != wire.ServiceExportClusterSetIP || im.Annotations[mcs.AnnotationWinner] != "c2") {
			t.Errorf("%s follows %s: %s", im.Name, im.Annotations[mcs.AnnotationWinner], im.Spec.Type)
		}
	}
	w.Set(func() {
		w.Remotes = slices.DeleteFunc(w.Remotes, func(r reconcile.Remote) bool { return r.Name == "a-hostile" })
	})
	for e := range w.services.ServiceExports().All(w.db.ReadTxn()) {
		if e.Cluster == "a-hostile" {
			w.services.ApplyExports([]store.Change[services.Export]{{Name: e.FullName(), Old: e}})
		}
	}
	has("it is removed", 0, 8)
	waittest.Until(t, "nothing is wrong any more", func() bool { return w.Wrong() == "" }, w.Wrong)
}

// Room that becomes free is for services that were left out.
func TestWhatWasLeftOutIsImportedWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "c2")
	w.namespace("shop")
	w.exportMany("c2", "shop", "s", 3)
	w.run(func(p *Params) { p.MaxImports = 16 })
	waittest.Until(t, "two imports", func() bool {
		return slices.Equal(w.importsOf("c2"), []string{"shop/s-0000", "shop/s-0001"}) && strings.Contains(w.Wrong(), "1 services are not imported")
	}, w.Wrong)
	w.services.ApplyExports([]store.Change[services.Export]{{Name: "shop/s-0000", Old: &services.Export{Cluster: "c2", Namespace: "shop", Name: "s-0000"}}})
	waittest.Until(t, "the third one", func() bool {
		return slices.Equal(w.importsOf("c2"), []string{"shop/s-0001", "shop/s-0002"}) && w.Wrong() == ""
	}, w.Wrong)
}
