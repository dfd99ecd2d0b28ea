package mirror

import (
	"maps"
	"slices"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/sim"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// TestConfigurationsAreValidated as an agent does: nothing is copied of a cluster with
// our own ID, with one that makes no sense, or with that of another cluster, until it
// has one of its own. Those beside it are copied meanwhile.
func TestConfigurationsAreValidated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.remote("a", 1)
	w.join(a)
	m := w.mirror()
	defer m.stop()
	w.equal(a)
	state := func(name string) (st remotecluster.Status) {
		for _, c := range m.Clusters() {
			if c.Name == name {
				st = c
			}
		}
		return st
	}
	refused := map[string]codes.Code{"ours": codes.ClusterIDTaken, "nonsense": codes.ConfigurationRefused, "taken": codes.ClusterIDTaken}
	remotes := map[string]*sim.Running{"ours": w.remote("ours", 10), "nonsense": w.remote("nonsense", 11), "taken": w.remote("taken", 12)}
	config := func(name string, id uint32) {
		t.Helper()
		cfg, err := wire.DecodeClusterConfig([]byte(remotes[name].Contents()[wire.ClusterConfigKey(name)]))
		must(t, err)
		cfg.ID = id
		must(t, remotes[name].Put(t.Context(), wire.ClusterConfigKey(name), cfg.Encode()))
	}
	config("ours", 250)
	config("nonsense", 4000)
	config("taken", 1)
	for _, r := range remotes {
		w.join(r)
	}
	for name, code := range refused {
		until(t, name+" to be refused", func() bool {
			st := state(name)
			return st.State == remotecluster.Failed && st.Code == code && st.Message != ""
		})
	}
	w.equal(a) // and nothing of the others
	all := []*sim.Running{a}
	for i, name := range slices.Sorted(maps.Keys(remotes)) {
		config(name, uint32(20+i)) //nolint:gosec // small
		all = append(all, remotes[name])
	}
	w.equal(all...)
	// A cluster that is copied and then takes another one's ID is withdrawn; one that
	// takes ours is kept as it was known.
	config("taken", 1)
	until(t, "it to be refused", func() bool { return state("taken").Code == codes.ClusterIDTaken })
	if cfg, err := wire.DecodeClusterConfig([]byte(w.copied()[wire.ClusterConfigKey("taken")])); err != nil || cfg.ID == 1 {
		t.Errorf("its configuration was copied: %+v, %v", cfg, err)
	}
	until(t, "its entries to go", func() bool { return len(w.cache(wire.Nodes.Prefix("taken", true))) == 0 })
}
