package nodes

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// TestCount: whatever is applied, by whichever source, the counts are those of the
// table.
func TestCount(t *testing.T) {
	t.Parallel()
	clusters := []string{"a", "b", "a-b"}
	rapid.Check(t, func(rt *rapid.T) {
		db, s := newNodes(t)
		drawn := func(rt *rapid.T) *Node {
			return node(rapid.SampledFrom(clusters).Draw(rt, "cluster"), rapid.SampledFrom([]string{"x", "y", "z"}).Draw(rt, "name"),
				rapid.SampledFrom([]wire.Source{wire.SourceClusterMesh, wire.SourceKVStore}).Draw(rt, "source"))
		}
		for range rapid.IntRange(1, 10).Draw(rt, "batches") {
			var batch []change
			for range rapid.IntRange(0, 6).Draw(rt, "changes") {
				if n := drawn(rt); rapid.Bool().Draw(rt, "delete") {
					batch = append(batch, change{Old: n})
				} else {
					batch = append(batch, change{New: n})
				}
			}
			s.Apply(batch)
			for _, cluster := range clusters {
				want := 0
				for range ByCluster(db.ReadTxn(), s.Table(), cluster) {
					want++
				}
				if got := s.Count(cluster); got != want {
					rt.Fatalf("%d nodes of %s are counted, there are %d", got, cluster, want)
				}
			}
		}
	})
}
