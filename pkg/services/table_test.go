package services

import (
	"slices"
	"strings"
	"testing"

	"github.com/cilium/statedb"
	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/internal/base/tables"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

type change = store.Change[Service]

func newServices(t testing.TB) (*statedb.DB, *Services) {
	t.Helper()
	db := statedb.New()
	s, err := New(db)
	if err != nil {
		t.Fatal(err)
	}
	return db, s
}

func TestNewTwiceOnOneDatabaseFails(t *testing.T) {
	t.Parallel()
	db, _ := newServices(t)
	if _, err := New(db); err == nil {
		t.Error("no error")
	}
	db = statedb.New()
	if _, err := tables.New(db, GlobalTableName, (*Global).FullName, globalIndex); err != nil {
		t.Fatal(err)
	}
	if _, err := New(db); err == nil {
		t.Error("no error, although there is a table of global services")
	}
}

// TestGoldenTrace replays how a reader changed its merged view while a service was shared, unshared and deleted.
func TestGoldenTrace(t *testing.T) {
	t.Parallel()
	var trace struct {
		EventsIn    []string `json:"events_in"`
		MergerCalls []string `json:"merger_calls"`
	}
	readGolden(t, "global_service_trace.json", &trace)
	db, s := newServices(t)
	expect := wire.Expect{Cluster: "cluster2", ClusterID: 2, LocalID: 1}
	var calls []string
	var current *Service
	var visible *Global
	for i, event := range trace.EventsIn {
		kind, value, _ := strings.Cut(event, " ")
		ch := change{Name: "ns/svc", Old: current}
		if kind != "delete" {
			w, err := wire.DecodeService("ns/svc", []byte(value), expect)
			if err != nil {
				t.Fatalf("event %d: %v", i, err)
			}
			ch.New = FromWire(w, wire.SourceClusterMesh)
		}
		s.Apply([]change{ch})
		current = ch.New

		txn := db.ReadTxn()
		now, _, _ := s.Global().Get(txn, GlobalByName("ns", "svc"))
		if shared := current != nil && current.Shared; shared != (now != nil) {
			t.Errorf("after event %d, shared is %v and visible is %v", i, shared, now != nil)
		}
		if exported, _, found := s.Exported().Get(txn, ByKey("cluster2", "ns", "svc")); found != (current != nil) || found && !exported.Equal(current) {
			t.Errorf("after event %d, the cluster's own entry is %+v, want %+v", i, exported, current)
		}
		switch {
		case now != nil && now != visible:
			calls = append(calls, "merge update cluster2/ns/svc")
		case now == nil && visible != nil:
			calls = append(calls, "merge delete cluster2/ns/svc")
		}
		visible = now
	}
	// The trace repeats an update that changes nothing; here that is not written.
	want := slices.Compact(trace.MergerCalls)
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Error(diff)
	}
}

func TestQueries(t *testing.T) {
	t.Parallel()
	db, s := newServices(t)
	s.Apply([]change{
		{New: svc("c1", true, "10.0.0.1")},
		{New: svc("c10", true)},
		{New: svc("c2", false)},
		{New: &Service{Cluster: "c1", Namespace: "ns", Name: "svc2", Shared: true, Source: wire.SourceClusterMesh}},
		{New: &Service{Cluster: "c1", Namespace: "ns", Name: "s", Source: wire.SourceClusterMesh}},
	})
	txn := db.ReadTxn()
	keys := func(seq func(func(*Service, uint64) bool)) (out []string) {
		for s := range seq {
			out = append(out, s.Key())
		}
		return out
	}
	tests := map[string]struct{ got, want []string }{
		"a cluster's services, not those of c10": {keys(ByCluster(txn, s.Exported(), "c1")), []string{"c1/ns/s", "c1/ns/svc", "c1/ns/svc2"}},
		"one service in all clusters":            {keys(s.Exported().List(txn, ByName("ns", "svc"))), []string{"c1/ns/svc", "c10/ns/svc", "c2/ns/svc"}},
		"one service of one cluster":             {keys(s.Exported().List(txn, ByKey("c10", "ns", "svc"))), []string{"c10/ns/svc"}},
		"an unknown one":                         {keys(s.Exported().List(txn, ByName("ns", "sv"))), nil},
	}
	for name, tc := range tests {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestNamesOfAnyLength(t *testing.T) {
	t.Parallel()
	for _, length := range []int{tables.MaxText - 3, tables.MaxText, 1 << 16, 1 << 17} {
		db, s := newServices(t)
		long := strings.Repeat("x", length)
		for _, name := range []string{"svc", long, long + "1", long + "2"} {
			a, b := svc("a", true, "10.0.0.1"), svc("b", true, "10.0.0.1")
			a.Name, b.Name = name, name
			s.Apply([]change{{New: a}, {New: b}})
			if g, _, found := s.Global().Get(db.ReadTxn(), GlobalByName("ns", name)); !found || g.NumBackends() != 2 {
				t.Errorf("length %d: the global service is %v", len(name), g)
			}
		}
		if n := len(statedb.Collect(ByCluster(db.ReadTxn(), s.Exported(), "a"))); n != 4 {
			t.Errorf("length %d: %d services", length, n)
		}
	}
}

func TestApplyMergesOncePerBatch(t *testing.T) {
	t.Parallel()
	db, s := newServices(t)
	var batch []change
	for _, c := range []string{"a", "b", "c"} {
		batch = append(batch, change{New: svc(c, true)}, change{New: svc(c, true, "10.0.0.1")})
	}
	s.Apply(batch)
	if rev := s.Global().Revision(db.ReadTxn()); rev != 1 {
		t.Errorf("%d writes of one global service in one batch", rev)
	}
	s.Apply(nil)
	s.Apply([]change{{}, {Old: svc("z", true)}, {New: svc("a", true)}, {New: svc("a", true, "10.0.0.1")}})
	// The first service was written again meanwhile, with the same contents.
	if rev := s.Global().Revision(db.ReadTxn()); rev != 1 {
		t.Errorf("%d writes", rev)
	}
}
