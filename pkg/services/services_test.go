package services

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/cilium/statedb"
	gocmp "github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

type sliceChange = store.Change[Slice]

// slice makes a slice of ns/svc with ready endpoints on node n.
func slice(cluster, name, service string, ips ...string) *Slice {
	w := &wire.EndpointSlice{Cluster: cluster, Namespace: "ns", Name: name, Labels: map[string]string{wire.LabelServiceName: service}}
	for _, a := range ips {
		w.Endpoints = append(w.Endpoints, wire.Endpoint{Addresses: []string{a}, NodeName: ptr("n")})
	}
	return SliceFromWire(w, wire.SourceClusterMesh)
}

// listed is a global service in a line for each backend in use.
func listed(db *statedb.DB, s *Services, name string) (out []string) {
	g, _, found := s.Global().Get(db.ReadTxn(), GlobalByName("ns", name))
	if !found {
		return nil
	}
	out = []string{}
	for p, b := range g.Backends() {
		out = append(out, fmt.Sprintf("%s %s %s", p.Cluster, b.IP, cmp.Or(b.Node, "-")))
	}
	return out
}

func TestApplySlices(t *testing.T) {
	t.Parallel()
	db, s := newServices(t)
	want := func(when, name string, lines ...string) {
		t.Helper()
		if diff := gocmp.Diff(lines, listed(db, s, name)); diff != "" {
			t.Errorf("%s: %s", when, diff)
		}
	}
	first := slice("c2", "svc-1", "svc", "10.0.0.1")
	s.ApplySlices([]sliceChange{{New: first}, {New: slice("c2", "none", "", "10.0.0.9")}})
	want("slices alone", "svc", "c2 10.0.0.1 n")
	s.Apply([]change{{New: svc("c2", true, "10.0.0.1", "10.0.0.2")}})
	want("then the entry", "svc", "c2 10.0.0.1 n", "c2 10.0.0.2 -")
	s.ApplySlices([]sliceChange{{New: slice("c2", "svc-2", "svc", "10.0.0.2", "10.0.0.3")}})
	want("another slice", "svc", "c2 10.0.0.1 n", "c2 10.0.0.2 n")
	s.Apply([]change{{New: svc("c2", false, "10.0.0.1")}})
	want("not shared", "svc")
	if _, _, found := s.Global().Get(db.ReadTxn(), GlobalByName("ns", "svc")); found {
		t.Error("a service that nobody shares is there because of its slices")
	}
	s.Apply([]change{{Old: svc("c2", false)}})
	want("without the entry", "svc", "c2 10.0.0.1 n", "c2 10.0.0.2 n", "c2 10.0.0.3 n")

	s.ApplySlices([]sliceChange{{New: slice("c2", "svc-1", "other", "10.0.0.1")}})
	want("moved away", "svc", "c2 10.0.0.2 n", "c2 10.0.0.3 n")
	want("moved to", "other", "c2 10.0.0.1 n")
	s.ApplySlices([]sliceChange{{New: slice("c2", "svc-1", "", "10.0.0.1")}})
	want("belongs to none", "other")
	s.ApplySlices([]sliceChange{{Old: first}}) // the table knows better what it was
	s.ApplySlices([]sliceChange{{Old: slice("c2", "svc-2", "svc")}, {Old: first}, {}})
	s.ApplySlices(nil)
	want("all gone", "svc")
	if n := s.Slices().NumObjects(db.ReadTxn()); n != 1 {
		t.Errorf("%d slices, want only the one that never belonged to a service", n)
	}
	if n := s.Global().NumObjects(db.ReadTxn()); n != 0 {
		t.Errorf("%d global services", n)
	}
}

// TestUnchangedSlicesWriteNothing: also one that changes in what nobody uses.
func TestUnchangedSlicesWriteNothing(t *testing.T) {
	t.Parallel()
	db, s := newServices(t)
	s.Apply([]change{{New: svc("c2", true, "10.0.0.1")}})
	s.ApplySlices([]sliceChange{{New: slice("c2", "svc-1", "svc", "10.0.0.1")}})
	rev := func() [2]uint64 {
		txn := db.ReadTxn()
		return [2]uint64{s.Slices().Revision(txn), s.Global().Revision(txn)}
	}
	before := rev()
	s.ApplySlices([]sliceChange{{New: slice("c2", "svc-1", "svc", "10.0.0.1")}})
	if rev() != before {
		t.Error("an equal slice was written")
	}
	s.ApplySlices([]sliceChange{{New: slice("c2", "svc-1", "svc", "10.0.0.1", "10.0.0.7")}})
	if now := rev(); now[0] == before[0] || now[1] != before[1] {
		t.Errorf("revisions %v after %v: the slice is another one, the global service is not", now, before)
	}
}

func TestSliceQueries(t *testing.T) {
	t.Parallel()
	db, s := newServices(t)
	s.ApplySlices([]sliceChange{
		{New: slice("c1", "b", "svc", "10.0.0.1")},
		{New: slice("c1", "a", "svc")},
		{New: slice("c1", "c", "")},
		{New: slice("c10", "a", "svc")},
		{New: slice("c1", "d", "svc2")},
	})
	txn := db.ReadTxn()
	keys := func(seq func(func(*Slice, uint64) bool)) (out []string) {
		for s := range seq {
			out = append(out, s.Key())
		}
		return out
	}
	tests := map[string]struct{ got, want []string }{
		"a cluster's slices, not those of c10": {keys(SlicesByCluster(txn, s.Slices(), "c1")), []string{"c1/ns/a", "c1/ns/b", "c1/ns/c", "c1/ns/d"}},
		"those of a service":                   {keys(s.Slices().List(txn, SlicesByService("c1", "ns", "svc"))), []string{"c1/ns/a", "c1/ns/b"}},
		"one":                                  {keys(s.Slices().List(txn, SliceByKey("c10", "ns", "a"))), []string{"c10/ns/a"}},
		"those of no service":                  {keys(s.Slices().List(txn, SlicesByService("c1", "ns", ""))), nil},
	}
	for name, tc := range tests {
		if diff := gocmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	one, _, _ := s.Slices().Get(txn, SliceByKey("c1", "ns", "b"))
	if diff := gocmp.Diff([]string{"c1", "ns", "b", "svc", "1", "clustermesh"}, one.TableRow()); diff != "" || len(one.TableHeader()) != 6 {
		t.Error(diff)
	}
}

func TestWithhold(t *testing.T) {
	t.Parallel()
	db, s := newServices(t)
	s.Apply([]change{{New: svc("c2", true, "10.0.0.1")}, {New: svc("c20", true, "10.0.0.2")}})
	s.ApplySlices([]sliceChange{{New: slice("c2", "x-1", "x", "10.0.0.3")}})
	get := func(name string) *Global {
		g, _, _ := s.Global().Get(db.ReadTxn(), GlobalByName("ns", name))
		return g
	}
	want := func(when, name string, lines ...string) {
		t.Helper()
		got := listed(db, s, name)
		if !slices.Equal(lines, got) || get(name) != nil && get(name).NumBackends() != len(got) {
			t.Errorf("%s: %q, want %q", when, got, lines)
		}
	}
	before, other := viewOf(get("svc")), get("svc").Part("c20")
	sources := func() [2]uint64 {
		return [2]uint64{s.Exported().Revision(db.ReadTxn()), s.Slices().Revision(db.ReadTxn())}
	}
	written := sources()

	s.Withhold("c2", true)
	want("withheld", "svc", "c20 10.0.0.2 -")
	want("withheld", "x")
	if got := get("x").Reason(get("x").Part("c2")); got != "shared by c2 with 1 backend, known from its endpoint slices alone; withheld because c2 has not answered for too long" {
		t.Errorf("the reason is %q", got)
	}
	if get("svc").Part("c20") != other {
		t.Error("the part of another cluster was made anew")
	}
	rev := s.Global().Revision(db.ReadTxn())
	s.Withhold("c2", true)
	s.Withhold("nobody", true)
	s.Withhold("nobody", false)
	s.Withhold("c20", false)
	if s.Global().Revision(db.ReadTxn()) != rev {
		t.Error("what changes nothing was written")
	}
	s.Withhold("c2", false)
	if diff := gocmp.Diff(before, viewOf(get("svc"))); diff != "" {
		t.Errorf("taken back: %s", diff)
	}
	want("taken back", "x", "c2 10.0.0.3 n")
	if sources() != written {
		t.Error("withholding wrote to the tables of services or slices")
	}

	// Drained while it is withheld, and back before and after it is taken back.
	s.Withhold("c2", true)
	s.Apply([]change{{Old: svc("c2", true)}})
	s.ApplySlices([]sliceChange{{Old: slice("c2", "x-1", "x")}})
	if get("x") != nil || get("svc").Part("c2") != nil {
		t.Error("parts of a cluster that was drained")
	}
	s.Apply([]change{{New: svc("c2", true, "10.0.0.5")}})
	want("back, still withheld", "svc", "c20 10.0.0.2 -")
	s.Withhold("c2", false)
	want("back", "svc", "c2 10.0.0.5 -", "c20 10.0.0.2 -")
	s.ApplySlices([]sliceChange{{New: slice("c2", "x-1", "x", "10.0.0.3")}})
	want("back", "x", "c2 10.0.0.3 n")
}

// TestSeveralWriters: sources of several clusters and kinds write at once.
func TestSeveralWriters(t *testing.T) {
	t.Parallel()
	db, s := newServices(t)
	var g errgroup.Group
	for _, cluster := range []string{"c2", "c3"} {
		g.Go(func() error {
			for i := range 20 {
				s.Apply([]change{{New: svc(cluster, i%2 == 1, "10.0.0.1")}})
			}
			return nil
		})
		g.Go(func() error {
			for i := range 20 {
				s.ApplySlices([]sliceChange{{New: slice(cluster, "1", "svc", "10.0.0.1", fmt.Sprintf("10.0.1.%d", i))}})
			}
			return nil
		})
		g.Go(func() error {
			for i := range 20 {
				s.Withhold(cluster, i%2 == 0)
				s.SetStanding(cluster, []Standing{Demoted, Withdrawn, Demoted, Full}[i%4])
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if got, want := listed(db, s, "svc"), []string{"c2 10.0.0.1 n", "c3 10.0.0.1 n"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// model is what the clusters export, and the merge as one would read it aloud.
type model struct {
	entries  map[key2]*Service
	slices   map[key2]*wire.EndpointSlice // by their own names
	withheld map[string]bool
	standing map[string]Standing
}

// parts are the parts of a service, made from scratch.
func (m *model) parts(name string) (out []*Service) {
	for _, cluster := range []string{"a", "a-b", "b", "c"} {
		if p := m.part(cluster, name); p != nil {
			p.Standing = m.standing[cluster]
			if m.withheld[cluster] {
				p.Standing = Withheld
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

// naiveBackend is everything that the slices say of an address. What is said of
// it as usable counts, and all the rest only if nothing is.
func naiveBackend(of []*wire.EndpointSlice, ip netip.Addr) (Backend, bool) {
	usable, rest := Backend{IP: ip, Conditions: NotReady | NotServing | IsTerminating}, Backend{IP: ip, Conditions: NotReady | NotServing | IsTerminating}
	isUsable, found := false, false
	for _, s := range of {
		for _, e := range s.Endpoints {
			if e.Addresses[0] != ip.String() {
				continue
			}
			found = true
			ready := e.Conditions.Ready == nil || *e.Conditions.Ready
			serving := ready
			if e.Conditions.Serving != nil {
				serving = *e.Conditions.Serving
			}
			into := &rest
			if ready || serving {
				isUsable, into = true, &usable
			}
			if ready {
				into.Conditions &^= NotReady
			}
			if serving {
				into.Conditions &^= NotServing
			}
			if e.Conditions.Terminating == nil || !*e.Conditions.Terminating {
				into.Conditions &^= IsTerminating
			}
			for to, from := range map[*string]*string{&into.Node: e.NodeName, &into.Zone: e.Zone, &into.Hostname: e.Hostname} {
				if *to == "" && from != nil {
					*to = *from
				}
			}
			for _, p := range s.Ports {
				if port := (Port{Name: *p.Name, Protocol: "TCP", Port: uint16(*p.Port)}); !slices.Contains(into.Ports, port) {
					into.Ports = append(into.Ports, port)
				}
			}
			sortPorts(into.Ports)
		}
	}
	if isUsable {
		return usable, true
	}
	return rest, found
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

// TestBothFormatsAgainstModel: whatever comes in whatever order, the table is
// the merge of what the clusters export, and only what changes is written.
func TestBothFormatsAgainstModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		db, s := newServices(t)
		m := &model{make(map[key2]*Service), make(map[key2]*wire.EndpointSlice), make(map[string]bool), make(map[string]Standing)}
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
		// others fails when a step of one cluster touched what is not its own.
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
						rt.Fatalf("%s: the part of %s was made anew for a change in %s", name, p.Cluster, cluster)
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
				e := drawService(rt)
				e.Standing = Full // nor this
				for i := range e.Backends {
					e.Backends[i].Conditions = 0 // an entry does not tell
					e.Backends[i].Zone = rapid.SampledFrom([]string{"", "own"}).Draw(rt, "zone")
				}
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
				to := rapid.SampledFrom([]Standing{Full, Demoted, Withdrawn}).Draw(rt, "standing")
				m.standing[c] = to
				s.SetStanding(c, to)
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
				s.SetStanding(c, Demoted)
				s.Withhold(c, false)
				s.SetStanding(c, Withdrawn)
				s.SetStanding(c, m.standing[c])
				for name, g := range globals(s, db) {
					if !slices.EqualFunc(g.Parts, before[name].Parts, (*Service).Equal) {
						rt.Fatalf("%s is another one", name)
					}
				}
			},
			"replay": func(rt *rapid.T) {
				before := globals(s, db)
				for _, e := range m.entries {
					s.Apply([]change{{New: e}})
				}
				for _, w := range m.slices {
					s.ApplySlices([]sliceChange{{New: SliceFromWire(w, sourceOf(w.Cluster))}})
				}
				if !maps.Equal(before, globals(s, db)) {
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
				for _, c := range slices.Sorted(maps.Keys(m.standing)) {
					steps = append(steps, func() { s2.SetStanding(c, m.standing[c]) })
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
				got := globals(s, db)
				want := make(map[string]*Global)
				for _, name := range names {
					parts := m.parts(name)
					if diff := gocmp.Diff(naive(parts), viewOf(got[name]).short()); diff != "" {
						rt.Fatalf("%s: %s", name, diff)
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
