package identities

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/statedb"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/heaptest"
)

type change = store.Change[Identity]

func newIdentities(t testing.TB) (*statedb.DB, *Identities) {
	t.Helper()
	db := statedb.New()
	s, err := New(db)
	must(t, err)
	return db, s
}

func identity(cluster string, id uint32, labels string) *Identity {
	return FromWire(wire.Identity{ID: id, Labels: wire.ParseLabels(labels)}, cluster, 2)
}

func TestNewTwiceOnOneDatabaseFails(t *testing.T) {
	t.Parallel()
	db, _ := newIdentities(t)
	if _, err := New(db); err == nil {
		t.Error("no error")
	}
}

// TestGoldenRemoteIdentities applies the keys a remote published to the table, and checks the result.
func TestGoldenRemoteIdentities(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/golden/remote_identities.json")
	must(t, err)
	var file map[string]json.RawMessage
	must(t, json.Unmarshal(data, &file))
	for title, prefix := range map[string]string{
		"direct (cilium/state)":          wire.Identities.Prefix("cluster2", false),
		"via kvstoremesh (cilium/cache)": wire.Identities.Prefix("cluster2", true),
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			var vectors []struct {
				Key, Value, Note string
				Kept             bool
				KeptAs           string `json:"kept_as"`
			}
			must(t, json.Unmarshal(file[title], &vectors))
			db, s := newIdentities(t)
			var want []string
			var batch []change
			for _, v := range vectors {
				if v.Kept {
					want = append(want, v.KeptAs)
				}
				name := strings.TrimPrefix(v.Key, prefix)
				id, err := wire.DecodeIdentity(name, []byte(v.Value), wire.Expect{Cluster: "cluster2", ClusterID: 2, LocalID: 1})
				if err == nil {
					batch = append(batch, change{Name: name, New: FromWire(id, "cluster2", 2)})
				}
			}
			s.Apply(batch)
			var got []string
			for i := range s.Table().All(db.ReadTxn()) {
				got = append(got, fmt.Sprintf("%d => %s", i.ID, i.Labels))
			}
			slices.Sort(want)
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
				t.Error(diff)
			}
		})
	}
}

func TestQueries(t *testing.T) {
	t.Parallel()
	db, s := newIdentities(t)
	s.Apply([]change{
		{Name: "256", New: identity("c2", 256, "k8s:a=1;")},
		{Name: "257", New: identity("c2", 257, "k8s:a=1;")},
		{Name: "256", New: identity("c20", 256, "k8s:a=2;")},
		{Name: "1", New: identity("c3", 1, "")},
	})
	list := func(seq func(func(*Identity, uint64) bool)) (out []string) {
		for i := range seq {
			out = append(out, strings.Join(i.TableRow(), " "))
		}
		return out
	}
	txn := db.ReadTxn()
	byText := func(text string) []string {
		key, err := parseKey(text)
		if err != nil {
			return []string{err.Error()}
		}
		return list(s.Table().Prefix(txn, primaryIndex.QueryFromKey(key)))
	}
	tests := map[string]struct{ got, want []string }{
		"by number, in all clusters":   {list(ByID(txn, s.Table(), 256)), []string{"256 c2 k8s:a=1;", "256 c20 k8s:a=2;"}},
		"by number, in one cluster":    {list(s.Table().List(txn, ByKey(256, "c2"))), []string{"256 c2 k8s:a=1;"}},
		"by cluster, by number":        {list(ByCluster(txn, s.Table(), "c2")), []string{"256 c2 k8s:a=1;", "257 c2 k8s:a=1;"}},
		"an unknown number":            {list(ByID(txn, s.Table(), 0)), nil},
		"an unknown cluster":           {list(ByCluster(txn, s.Table(), "c")), nil},
		"by text, number":              {byText("1"), []string{"1 c3 "}},
		"by text, number and cluster":  {byText("256/c20"), []string{"256 c20 k8s:a=2;"}},
		"by text that is not a number": {byText("x"), []string{`reading identity "x", which should be a number or number/cluster: strconv.ParseUint: parsing "x": invalid syntax`}},
		"in order of number, not text": {list(s.Table().All(txn)), []string{"1 c3 ", "256 c2 k8s:a=1;", "256 c20 k8s:a=2;", "257 c2 k8s:a=1;"}},
		"the header fits to the rows":  {(*Identity)(nil).TableHeader(), []string{"ID", "Cluster", "Labels"}},
	}
	for name, tc := range tests {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestApply(t *testing.T) {
	t.Parallel()
	one, two := identity("c2", 300, "k8s:a=1;"), identity("c2", 300, "k8s:a=2;")
	tests := map[string]struct {
		steps  []change
		writes uint64
		want   *Identity // the identity c2/300 at the end
	}{
		"a new one appears":      {[]change{{Name: "300", New: one}}, 1, one},
		"an equal one, no write": {[]change{{Name: "300", New: one}, {Name: "300", New: identity("c2", 300, "k8s:a=1;")}}, 1, one},
		"the same one, no write": {[]change{{Name: "300", New: one}, {Name: "300", New: one}}, 1, one},
		"a changed one replaces": {[]change{{Name: "300", New: one}, {Name: "300", Old: one, New: two}}, 2, two},
		"a deletion removes":     {[]change{{Name: "300", New: one}, {Name: "300", Old: one}}, 2, nil},
		"deleting twice":         {[]change{{Name: "300", New: one}, {Name: "300", Old: one}, {Name: "300", Old: one}}, 2, nil},
		"an empty change":        {[]change{{}}, 0, nil},

		"a padded number is the same identity":       {[]change{{Name: "0300", New: one}}, 1, one},
		"and goes like any other":                    {[]change{{Name: "0300", New: one}, {Name: "0300", Old: one}}, 2, nil},
		"the plain number wins over a padded one":    {[]change{{Name: "300", New: one}, {Name: "0300", New: two}}, 1, one},
		"whichever came first":                       {[]change{{Name: "0300", New: two}, {Name: "300", New: one}}, 2, one},
		"the padded one takes over":                  {[]change{{Name: "300", New: one}, {Name: "0300", New: two}, {Name: "300", Old: one}}, 2, two},
		"a padded one that goes leaves the plain":    {[]change{{Name: "300", New: one}, {Name: "0300", New: two}, {Name: "0300", Old: two}}, 1, one},
		"of two padded ones the least wins":          {[]change{{Name: "0300", New: two}, {Name: "00300", New: one}}, 2, one},
		"an unknown padded one that goes is nothing": {[]change{{Name: "300", New: one}, {Name: "0300", Old: two}}, 1, one},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, batched := range []bool{true, false} {
				db, s := newIdentities(t)
				if batched {
					s.Apply(tc.steps)
				} else {
					for i := range tc.steps {
						s.Apply(tc.steps[i : i+1])
					}
				}
				txn := db.ReadTxn()
				got, _, _ := s.Table().Get(txn, ByKey(300, "c2"))
				if got != tc.want {
					t.Errorf("batched %v: got %v, want %v", batched, got, tc.want)
				}
				if writes := s.Table().Revision(txn); writes != tc.writes {
					t.Errorf("batched %v: %d writes, want %d", batched, writes, tc.writes)
				}
			}
		})
	}
}

// TestApplyAgainstModel: after all changes the table depends only on the existing keys, replays write nothing, and no
// unneeded state is kept.
func TestApplyAgainstModel(t *testing.T) {
	t.Parallel()
	type entry struct{ cluster, name string }
	rapid.Check(t, func(rt *rapid.T) {
		db, s := newIdentities(t)
		keys := make(map[entry]*Identity)
		rt.Repeat(map[string]func(*rapid.T){
			"batch": func(rt *rapid.T) {
				var batch []change
				for range rapid.IntRange(0, 4).Draw(rt, "changes") {
					e := entry{
						rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "cluster"),
						rapid.SampledFrom([]string{"1", "01", "001", "2", "02"}).Draw(rt, "name"),
					}
					if old := keys[e]; old != nil && rapid.Bool().Draw(rt, "delete") {
						batch = append(batch, change{Name: e.name, Old: old})
						delete(keys, e)
						continue
					}
					id, _ := strconv.Atoi(e.name)
					v := identity(e.cluster, uint32(id), rapid.SampledFrom([]string{"k8s:x=1;", "k8s:x=2;"}).Draw(rt, "labels"))
					batch = append(batch, change{Name: e.name, Old: keys[e], New: v})
					keys[e] = v
				}
				s.Apply(batch)
				rev := s.Table().Revision(db.ReadTxn())
				for e, v := range keys {
					s.Apply([]change{{Name: e.name, New: v}})
				}
				if again := s.Table().Revision(db.ReadTxn()); again != rev {
					rt.Fatalf("a replay wrote %d objects", again-rev)
				}
			},
			"": func(rt *rapid.T) {
				want := make(map[string]string)
				padded := make(map[identityKey]bool)
				for _, e := range slices.SortedFunc(maps.Keys(keys), func(x, y entry) int { return strings.Compare(x.name, y.name) }) {
					v := keys[e]
					plain := isPlain(e.name, v.ID)
					if k := fmt.Sprint(v.ID, v.Cluster); want[k] == "" || plain {
						want[k] = v.Labels.String()
					}
					padded[keyOf(v)] = padded[keyOf(v)] || !plain
				}
				maps.DeleteFunc(padded, func(_ identityKey, is bool) bool { return !is })
				got := make(map[string]string)
				for i := range s.Table().All(db.ReadTxn()) {
					got[fmt.Sprint(i.ID, i.Cluster)] = i.Labels.String()
				}
				if diff := cmp.Diff(want, got); diff != "" {
					rt.Fatal(diff)
				}
				if len(s.spellings) != len(padded) {
					rt.Fatalf("%d numbers remembered, %d have padded keys", len(s.spellings), len(padded))
				}
			},
		})
	})
}

// encoded returns a mapping of the usual shape. The application's name and version differ from one identity to the
// next.
func encoded(i int) (name string, value []byte) {
	ns := fmt.Sprintf("namespace-%03d", i%100)
	labels := fmt.Sprintf("k8s:app.kubernetes.io/name=application-%d;k8s:app.kubernetes.io/version=1.%d;k8s:app=application-%d;"+
		"k8s:io.cilium.k8s.namespace.labels.kubernetes.io/metadata.name=%s;k8s:io.cilium.k8s.policy.cluster=cluster2;"+
		"k8s:io.cilium.k8s.policy.serviceaccount=default;k8s:io.kubernetes.pod.namespace=%s;k8s:team=team-%d;", i/3, i, i/3, ns, ns, i%20)
	return strconv.Itoa(2<<16 + i), []byte(labels)
}

func batchOf(b *testing.B, from, size int) []change {
	expect := wire.Expect{Cluster: "cluster2", ClusterID: 2, LocalID: 1}
	batch := make([]change, size)
	for i := range batch {
		name, value := encoded(from + i)
		id, err := wire.DecodeIdentity(name, value, expect)
		must(b, err)
		batch[i] = change{Name: name, New: FromWire(id, expect.Cluster, expect.ClusterID)}
	}
	return batch
}

// BenchmarkApply applies identities with 8 labels in batches of 5,000. The object bytes do not include the table: they
// are the identity with the texts of its own labels.
func BenchmarkApply(b *testing.B) {
	const batches, size = 10, 5000
	var object, all float64
	for b.Loop() {
		b.StopTimer()
		_, s := newIdentities(b)
		before := heaptest.Live()
		var changes [batches][]change
		for i := range changes {
			changes[i] = batchOf(b, i*size, size)
		}
		changesBytes := uint64(batches * size * 40)
		object = float64(heaptest.Live()-before-changesBytes) / (batches * size)
		for _, batch := range changes {
			b.StartTimer()
			s.Apply(batch)
			b.StopTimer()
		}
		all = float64(heaptest.Live()-before-changesBytes) / (batches * size)
		runtime.KeepAlive(changes)
		runtime.KeepAlive(s)
		b.StartTimer()
	}
	b.ReportMetric(object, "object-B/object")
	b.ReportMetric(all, "B/object")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batches*size), "ns/object")
}
