package services

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/cilium/statedb"
	gocmp "github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

type sliceChange = store.Change[Slice]

// slice returns a slice of ns/svc with ready endpoints on node n.
func slice(cluster, name, service string, ips ...string) *Slice {
	w := &wire.EndpointSlice{Cluster: cluster, Namespace: "ns", Name: name, Labels: map[string]string{wire.LabelServiceName: service}}
	for _, a := range ips {
		w.Endpoints = append(w.Endpoints, wire.Endpoint{Addresses: []string{a}, NodeName: ptr("n")})
	}
	return SliceFromWire(w, wire.SourceClusterMesh)
}

// listed returns a line for each backend in use of a global service.
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
	s.ApplySlices([]sliceChange{{Old: first}}) // the table has the newer version
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
		t.Error("the part of another cluster was made again")
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

	// The cluster is drained while it is withheld. It is added again before and after the end of the withholding.
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

// TestSeveralWriters: sources of several clusters and kinds write concurrently.
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
				s.SetUse(cluster, []BackendUse{Demoted, Withdrawn, Demoted, Full}[i%4])
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
