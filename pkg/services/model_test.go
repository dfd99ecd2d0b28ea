package services

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/cilium/statedb"
	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

type key2 struct{ cluster, name string }

// model is the exports of the clusters, and a literal implementation of their merge.
type model struct {
	entries  map[key2]*Service
	slices   map[key2]*wire.EndpointSlice // by their own names
	withheld map[string]bool
	use      map[string]BackendUse
}

// parts returns the parts of a service, built from all exports.
func (m *model) parts(name string) (out []*Service) {
	for _, cluster := range []string{"a", "a-b", "b", "c"} {
		if p := m.part(cluster, name); p != nil {
			p.Use = m.use[cluster]
			if m.withheld[cluster] {
				p.Use = Withheld
			}
			out = append(out, p)
		}
	}
	return out
}

func (m *model) part(cluster, name string) *Service {
	var of []*wire.EndpointSlice
	for _, k := range slices.SortedFunc(maps.Keys(m.slices), func(a, b key2) int { return cmp.Compare(a.name, b.name) }) {
		if s := m.slices[k]; k.cluster == cluster && s.Labels[wire.LabelServiceName] == name {
			of = append(of, s)
		}
	}
	entry := m.entries[key2{cluster, name}]
	switch {
	case entry != nil:
		p := *entry
		p.Backends = nil
		for _, b := range entry.Backends {
			if k, found := naiveBackend(of, b.IP); found {
				b.Node, b.Conditions = k.Node, k.Conditions
				if b.Zone == "" {
					b.Zone = k.Zone
				}
				if b.Hostname == "" {
					b.Hostname = k.Hostname
				}
			}
			p.Backends = append(p.Backends, b)
		}
		return &p
	case len(of) > 0:
		p := &Service{Cluster: cluster, Namespace: "ns", Name: name, Source: sourceOf(cluster), Shared: true, IncludeExternal: true, Sliced: true}
		for i := range 6 {
			if b, found := naiveBackend(of, address(i)); found && b.Usable() {
				p.Backends = append(p.Backends, b)
			}
		}
		return p
	}
	return nil
}

func address(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}) }

func sourceOf(cluster string) wire.Source {
	if cluster == "c" {
		return wire.SourceLocal
	}
	return wire.SourceClusterMesh
}

func drawSlice(t *rapid.T) *wire.EndpointSlice {
	optional := func(label string, values ...string) *string {
		v := rapid.SampledFrom(append(values, "")).Draw(t, label)
		if v == "" {
			return nil
		}
		return &v
	}
	tristate := func(label string) *bool { return rapid.Ptr(rapid.Bool(), true).Draw(t, label) }
	s := &wire.EndpointSlice{
		Cluster:   rapid.SampledFrom([]string{"a", "a-b", "b", "c"}).Draw(t, "cluster"),
		Namespace: "ns", Name: rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "slice"),
		Labels: map[string]string{wire.LabelServiceName: rapid.SampledFrom([]string{"x", "y", "xy", ""}).Draw(t, "service")},
	}
	for range rapid.IntRange(0, 3).Draw(t, "endpoints") {
		s.Endpoints = append(s.Endpoints, wire.Endpoint{
			Addresses:  []string{address(rapid.IntRange(0, 5).Draw(t, "address")).String()},
			Conditions: wire.EndpointConditions{Ready: tristate("ready"), Serving: tristate("serving"), Terminating: tristate("terminating")},
			NodeName:   optional("node", "n1", "n2"), Zone: optional("zone", "z1", "z2"), Hostname: optional("hostname", "h1", "h2"),
		})
	}
	for range rapid.IntRange(0, 2).Draw(t, "ports") {
		s.Ports = append(s.Ports, wire.EndpointPort{
			Name: ptr(rapid.SampledFrom([]string{"", "http"}).Draw(t, "port name")),
			Port: ptr(rapid.Int32Range(80, 81).Draw(t, "port")),
		})
	}
	return s
}

// drawEntry draws an entry of the older format, which has neither conditions nor a use.
func drawEntry(t *rapid.T) *Service {
	e := drawService(t)
	e.Use = Full
	for i := range e.Backends {
		e.Backends[i].Conditions = 0
		e.Backends[i].Zone = rapid.SampledFrom([]string{"", "own"}).Draw(t, "zone")
	}
	return e
}

// TestBothFormatsAgainstModel: after changes in any order, the table is the merge of the clusters' exports, and each
// step writes only the services that it changes.
func TestBothFormatsAgainstModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		db, s := newServices(t)
		m := &model{make(map[key2]*Service), make(map[key2]*wire.EndpointSlice), make(map[string]bool), make(map[string]BackendUse)}
		cluster := rapid.SampledFrom([]string{"a", "a-b", "b", "c"})
		names := []string{"x", "y", "xy"}
		globals := func(s *Services, db *statedb.DB) map[string]*Global {
			out := make(map[string]*Global)
			for g := range s.Global().All(db.ReadTxn()) {
				out[g.Name] = g
			}
			return out
		}
		applySlice := func(w *wire.EndpointSlice, gone bool) {
			one := SliceFromWire(w, sourceOf(w.Cluster))
			if k := (key2{w.Cluster, w.Name}); gone {
				delete(m.slices, k)
				s.ApplySlices([]sliceChange{{Old: one}})
			} else {
				m.slices[k] = w
				s.ApplySlices([]sliceChange{{New: one}})
			}
		}
		applyEntry := func(e *Service, gone bool) {
			if k := (key2{e.Cluster, e.Name}); gone {
				delete(m.entries, k)
				s.Apply([]change{{Old: e}})
			} else {
				m.entries[k] = e
				s.Apply([]change{{New: e}})
			}
		}
		// others fails when a step of one cluster changed parts of another.
		others := func(before map[string]*Global, cluster string) {
			for name, g := range globals(s, db) {
				was := before[name]
				if was == nil {
					continue
				}
				if g != was && g.Part(cluster) == was.Part(cluster) {
					rt.Fatalf("%s was written although the part of %s is the same", name, cluster)
				}
				for _, p := range g.Parts {
					if p.Cluster != cluster && p != was.Part(p.Cluster) {
						rt.Fatalf("%s: the part of %s was made again for a change in %s", name, p.Cluster, cluster)
					}
				}
			}
		}
		gone := func() bool { return rapid.IntRange(0, 2).Draw(rt, "gone") == 0 }
		rt.Repeat(map[string]func(*rapid.T){
			"slice": func(rt *rapid.T) {
				before := globals(s, db)
				w := drawSlice(rt)
				applySlice(w, gone())
				others(before, w.Cluster)
			},
			"entry": func(rt *rapid.T) {
				before := globals(s, db)
				e := drawEntry(rt)
				applyEntry(e, gone())
				others(before, e.Cluster)
			},
			"withhold": func(rt *rapid.T) {
				before := globals(s, db)
				c, yes := cluster.Draw(rt, "cluster"), rapid.Bool().Draw(rt, "yes")
				m.withheld[c] = yes
				s.Withhold(c, yes)
				others(before, c)
			},
			"demote or withdraw": func(rt *rapid.T) {
				before := globals(s, db)
				c := rapid.SampledFrom([]string{"a", "a-b", "b"}).Draw(rt, "cluster")
				to := rapid.SampledFrom([]BackendUse{Full, Demoted, Withdrawn}).Draw(rt, "use")
				m.use[c] = to
				s.SetUse(c, to)
				others(before, c)
			},
			"drain": func(rt *rapid.T) {
				before := globals(s, db)
				c := cluster.Draw(rt, "cluster")
				for k, e := range maps.Clone(m.entries) {
					if k.cluster == c {
						applyEntry(e, true)
					}
				}
				for k, w := range maps.Clone(m.slices) {
					if k.cluster == c {
						applySlice(w, true)
					}
				}
				others(before, c)
			},
			"demote and restore": func(rt *rapid.T) {
				c := cluster.Draw(rt, "cluster")
				if m.withheld[c] {
					return
				}
				before := globals(s, db)
				s.Withhold(c, true)
				s.SetUse(c, Demoted)
				s.Withhold(c, false)
				s.SetUse(c, Withdrawn)
				s.SetUse(c, m.use[c])
				for name, g := range globals(s, db) {
					if !slices.EqualFunc(g.Parts, before[name].Parts, (*Service).Equal) {
						rt.Fatalf("%s is another one", name)
					}
				}
			},
			"batch": func(rt *rapid.T) {
				var batch []change
				for _, e := range rapid.SliceOfN(rapid.Custom(drawEntry), 0, 5).Draw(rt, "entries") {
					if k := (key2{e.Cluster, e.Name}); gone() {
						delete(m.entries, k)
						batch = append(batch, change{Old: e})
					} else {
						m.entries[k] = e
						batch = append(batch, change{New: e})
					}
				}
				s.Apply(batch)
			},
			"replay": func(rt *rapid.T) {
				before, wrote := globals(s, db), s.Exported().Revision(db.ReadTxn())
				for _, e := range m.entries {
					s.Apply([]change{{New: e}})
				}
				for _, w := range m.slices {
					s.ApplySlices([]sliceChange{{New: SliceFromWire(w, sourceOf(w.Cluster))}})
				}
				if !maps.Equal(before, globals(s, db)) || s.Exported().Revision(db.ReadTxn()) != wrote {
					rt.Fatal("a replay wrote")
				}
			},
			"another order": func(rt *rapid.T) {
				db2, s2 := newServices(t)
				var steps []func()
				for _, k := range slices.SortedFunc(maps.Keys(m.entries), compareKeys) {
					steps = append(steps, func() { s2.Apply([]change{{New: m.entries[k]}}) })
				}
				for _, k := range slices.SortedFunc(maps.Keys(m.slices), compareKeys) {
					steps = append(steps, func() { s2.ApplySlices([]sliceChange{{New: SliceFromWire(m.slices[k], sourceOf(k.cluster))}}) })
				}
				for _, c := range slices.Sorted(maps.Keys(m.withheld)) {
					steps = append(steps, func() { s2.Withhold(c, m.withheld[c]) })
				}
				for _, c := range slices.Sorted(maps.Keys(m.use)) {
					steps = append(steps, func() { s2.SetUse(c, m.use[c]) })
				}
				if len(steps) == 0 {
					return
				}
				for _, step := range rapid.Permutation(steps).Draw(rt, "order") {
					step()
				}
				if diff := compareGlobals(globals(s, db), globals(s2, db2)); diff != "" {
					rt.Fatal(diff)
				}
			},
			"": func(rt *rapid.T) {
				exported := make(map[key2]*Service)
				for e := range s.Exported().All(db.ReadTxn()) {
					exported[key2{e.Cluster, e.Name}] = e
				}
				if !maps.EqualFunc(exported, m.entries, (*Service).Equal) {
					rt.Fatalf("exported %v, want %v", exported, m.entries)
				}
				got := globals(s, db)
				want := make(map[string]*Global)
				for _, name := range names {
					parts := m.parts(name)
					if diff := gocmp.Diff(naive(parts), viewOf(got[name]).short()); diff != "" {
						rt.Fatalf("%s: %s", name, diff)
					}
					if lost := takenByPolicy(parts); lost != "" {
						rt.Fatalf("%s: %s", name, lost)
					}
					if got[name] != nil {
						want[name] = &Global{Namespace: "ns", Name: name, Parts: parts}
					}
				}
				if diff := compareGlobals(want, got); diff != "" {
					rt.Fatal(diff)
				}
			},
		})
	})
}

func compareKeys(a, b key2) int {
	return cmp.Or(cmp.Compare(a.cluster, b.cluster), cmp.Compare(a.name, b.name))
}

func compareGlobals(want, got map[string]*Global) string {
	parts := func(from map[string]*Global) map[string][]*Service {
		out := make(map[string][]*Service)
		for name, g := range from {
			out[g.Namespace+"/"+name] = g.Parts
		}
		return out
	}
	return gocmp.Diff(parts(want), parts(got), netipTypes)
}
