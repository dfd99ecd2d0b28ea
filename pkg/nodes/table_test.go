package nodes

import (
	"maps"
	"strings"
	"testing"

	"github.com/cilium/statedb"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mesh-agent/mesh-agent/internal/base/tables"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

type change = store.Change[Node]

func newNodes(t testing.TB) (*statedb.DB, *Nodes) {
	t.Helper()
	db := statedb.New()
	s, err := New(db)
	if err != nil {
		t.Fatal(err)
	}
	return db, s
}

func node(cluster, name string, source wire.Source, ips ...string) *Node {
	n := &Node{Cluster: cluster, Name: name, Source: source}
	for _, s := range ips {
		n.Addresses = append(n.Addresses, Address{wire.AddressInternalIP, ip(s)})
	}
	return n
}

func TestNewTwiceOnOneDatabaseFails(t *testing.T) {
	t.Parallel()
	db, _ := newNodes(t)
	if _, err := New(db); err == nil {
		t.Error("no error")
	}
}

func TestQueries(t *testing.T) {
	t.Parallel()
	db, s := newNodes(t)
	const mesh = wire.SourceClusterMesh
	s.Apply([]change{
		{New: node("c1", "b", mesh, "192.0.2.1", "fd00::1")},
		{New: node("c1", "a", mesh, "192.0.2.2")},
		{New: node("c10", "a", mesh, "192.0.2.1")},
		{New: node("c1-b", "a", mesh)},
	})
	keys := func(seq func(func(*Node, uint64) bool)) (out []string) {
		for n := range seq {
			out = append(out, n.Key())
		}
		return out
	}
	txn := db.ReadTxn()
	tests := map[string]struct{ got, want []string }{
		"a cluster's nodes, not those of c10 or c1-b": {keys(ByCluster(txn, s.Table(), "c1")), []string{"c1/a", "c1/b"}},
		"an unknown cluster has none":                 {keys(ByCluster(txn, s.Table(), "c")), nil},
		"a node by name":                              {keys(s.Table().List(txn, ByName("c1", "b"))), []string{"c1/b"}},
		"no node by part of a name":                   {keys(s.Table().List(txn, ByKey("c1/"))), nil},
		"nodes by an address that two have":           {keys(s.Table().List(txn, ByAddress(ip("192.0.2.1")))), []string{"c1/b", "c10/a"}},
		"nodes by an IPv4-mapped address":             {keys(s.Table().List(txn, ByAddress(ip("::ffff:192.0.2.2")))), []string{"c1/a"}},
		"nodes by an IPv6 address":                    {keys(s.Table().List(txn, ByAddress(ip("fd00::1")))), []string{"c1/b"}},
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
		db, s := newNodes(t)
		long := strings.Repeat("x", length)
		var nodes []*Node
		for _, name := range []string{"x", long, long + "1", long + "2"} {
			nodes = append(nodes, node("c", name, wire.SourceClusterMesh, "192.0.2.1"))
			s.Apply([]change{{New: nodes[len(nodes)-1]}})
		}
		txn := db.ReadTxn()
		for _, n := range nodes {
			if got, _, _ := s.Table().Get(txn, ByName("c", n.Name)); got != n {
				t.Errorf("length %d: not found by name", len(n.Name))
			}
		}
		byAddress := statedb.Collect(s.Table().List(txn, ByAddress(ip("192.0.2.1"))))
		byCluster := statedb.Collect(ByCluster(txn, s.Table(), "c"))
		if len(byAddress) != len(nodes) || len(byCluster) != len(nodes) {
			t.Errorf("length %d: %d by address, %d by cluster", length, len(byAddress), len(byCluster))
		}
		for _, n := range nodes {
			s.Apply([]change{{Old: n}})
		}
		if n := s.Table().NumObjects(db.ReadTxn()); n != 0 {
			t.Errorf("length %d: %d are left", length, n)
		}
	}
}

func TestApply(t *testing.T) {
	t.Parallel()
	const mesh, kvstore = wire.SourceClusterMesh, wire.SourceKVStore
	tests := map[string]struct {
		steps  []change
		writes uint64
		want   *Node // the node c/n at the end; nil for none
	}{
		"a new node appears":                   {[]change{{New: node("c", "n", mesh)}}, 1, node("c", "n", mesh)},
		"an equal one, no write":               {[]change{{New: node("c", "n", mesh)}, {New: node("c", "n", mesh)}}, 1, node("c", "n", mesh)},
		"a changed one replaces":               {[]change{{New: node("c", "n", mesh)}, {New: node("c", "n", mesh, "192.0.2.1")}}, 2, node("c", "n", mesh, "192.0.2.1")},
		"a deletion removes":                   {[]change{{New: node("c", "n", mesh)}, {Old: node("c", "n", mesh)}}, 2, nil},
		"deleting twice":                       {[]change{{New: node("c", "n", mesh)}, {Old: node("c", "n", mesh)}, {Old: node("c", "n", mesh)}}, 2, nil},
		"deleting the unknown":                 {[]change{{Old: node("c", "n", mesh)}}, 0, nil},
		"an empty change":                      {[]change{{}}, 0, nil},
		"a weaker source's update is ignored":  {[]change{{New: node("c", "n", kvstore)}, {New: node("c", "n", mesh)}}, 1, node("c", "n", kvstore)},
		"a stronger source's update replaces":  {[]change{{New: node("c", "n", mesh)}, {New: node("c", "n", kvstore)}}, 2, node("c", "n", kvstore)},
		"another source's deletion is ignored": {[]change{{New: node("c", "n", kvstore)}, {Old: node("c", "n", mesh)}}, 1, node("c", "n", kvstore)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, batched := range []bool{true, false} {
				db, s := newNodes(t)
				if batched {
					s.Apply(tc.steps)
				} else {
					for i := range tc.steps {
						s.Apply(tc.steps[i : i+1])
					}
				}
				txn := db.ReadTxn()
				got, _, _ := s.Table().Get(txn, ByName("c", "n"))
				if diff := cmp.Diff(tc.want, got, netipTypes); diff != "" {
					t.Errorf("batched %v: %s", batched, diff)
				}
				if n := s.Count("c"); n != s.Table().NumObjects(txn) || s.Count("other") != 0 {
					t.Errorf("batched %v: %d nodes are counted", batched, n)
				}
				if writes := s.Table().Revision(txn); writes != tc.writes {
					t.Errorf("batched %v: %d writes, want %d", batched, writes, tc.writes)
				}
			}
		})
	}
}

// TestApplyAgainstModel: the table equals a map, replays write nothing, and an unchanged node keeps its pointer.
func TestApplyAgainstModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		db, s := newNodes(t)
		model := make(map[string]*Node)
		rt.Repeat(map[string]func(*rapid.T){
			"batch": func(rt *rapid.T) {
				batch := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) change {
					n := drawNode(rt)
					n.Cluster = rapid.SampledFrom([]string{"a", "b", "a-b"}).Draw(rt, "cluster")
					n.Name = rapid.SampledFrom([]string{"x", "y"}).Draw(rt, "name")
					if rapid.Bool().Draw(rt, "delete") {
						return change{Name: n.Name, Old: n}
					}
					return change{Name: n.Name, New: n}
				}), 0, 4).Draw(rt, "changes")
				s.Apply(batch)
				rev := s.Table().Revision(db.ReadTxn())
				for _, ch := range batch {
					if ch.New == nil {
						delete(model, ch.Old.Key())
					} else if old := model[ch.New.Key()]; old == nil || !old.Equal(ch.New) {
						model[ch.New.Key()] = ch.New
					}
				}
				for _, n := range model {
					s.Apply([]change{{Name: n.Name, New: n}})
				}
				if again := s.Table().Revision(db.ReadTxn()); again != rev {
					rt.Fatalf("a replay wrote %d objects", again-rev)
				}
			},
			"": func(rt *rapid.T) {
				txn := db.ReadTxn()
				if got := s.Table().NumObjects(txn); got != len(model) {
					rt.Fatalf("%d nodes, want %d", got, len(model))
				}
				counts := make(map[string]int)
				for n := range s.Table().All(txn) {
					if model[n.Key()] != n {
						rt.Fatalf("%s is not the node that was applied", n.Key())
					}
					counts[n.Cluster]++
				}
				if !maps.Equal(counts, s.counts) {
					rt.Fatalf("counted are %v, there are %v", s.counts, counts)
				}
			},
		})
	})
}
