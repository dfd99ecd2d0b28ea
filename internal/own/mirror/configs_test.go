package mirror

import (
	"maps"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/claims"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/sim"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestConfigurationsAreValidated as an agent does: nothing is copied of a cluster with our own ID, with an invalid one,
// or with that of another cluster, until it has one of its own. The other clusters are copied meanwhile.
func TestConfigurationsAreValidated(t *testing.T) {
	t.Parallel()
	w, a, m := copying(t)
	refused := map[string]codes.Code{"ours": codes.ClusterIDTaken, "nonsense": codes.ConfigurationRefused, "taken": codes.ClusterIDTaken}
	remotes := map[string]*sim.Running{"ours": w.remote("ours", 10), "nonsense": w.remote("nonsense", 11), "taken": w.remote("taken", 12)}
	w.config(remotes["ours"], 250)
	w.config(remotes["nonsense"], 4000)
	w.config(remotes["taken"], 1)
	for _, r := range remotes {
		w.join(r)
	}
	for name, code := range refused {
		waittest.Until(t, name+" to be refused", func() bool {
			st := m.state(name)
			return st.State == remotecluster.Failed && st.Code == code && st.Message != ""
		})
	}
	w.equal(a) // and nothing of the others
	all := []*sim.Running{a}
	for i, name := range slices.Sorted(maps.Keys(remotes)) {
		w.config(remotes[name], uint32(20+i)) //nolint:gosec // small
		all = append(all, remotes[name])
	}
	w.equal(all...)
	// A cluster that is copied and then takes another one's ID is withdrawn; one
	// whose ID makes no sense is kept as it was known.
	w.config(remotes["nonsense"], 4000)
	w.config(remotes["taken"], 1)
	waittest.Until(t, "it to be refused", func() bool { return m.state("taken").Code == codes.ClusterIDTaken })
	if _, there := w.copied()[wire.ClusterConfigKey("taken")]; there {
		t.Error("its configuration is still there, or is copied again")
	}
	waittest.Until(t, "its entries to go", func() bool { return len(w.cache(wire.Nodes.Prefix("taken", true))) == 0 })
	waittest.Until(t, "the other one to be refused", func() bool { return m.state("nonsense").Code == refused["nonsense"] })
	if cfg, err := wire.DecodeClusterConfig([]byte(w.copied()[wire.ClusterConfigKey("nonsense")])); err != nil || cfg.ID == 4000 {
		t.Errorf("its configuration was copied: %+v, %v", cfg, err)
	}
}

// TestAnIDIsThatOfOneCopy at each revision of our own etcd, when an ID goes from one
// cluster to another: because the first one claims one that it cannot have, or another
// one, or because it was copied by an earlier term, and is away.
func TestAnIDIsThatOfOneCopy(t *testing.T) {
	waittest.Long(t)
	t.Parallel()
	w, a, m := copying(t)
	b, c := w.remote("b", 2), w.remote("c", 3)
	w.join(b)
	w.join(c)
	w.equal(a, b, c)
	w.config(b, 1) // that of a
	waittest.Until(t, "it to be refused", func() bool { return m.state("b").Code == codes.ClusterIDTaken })
	w.config(c, 2)
	waittest.Until(t, "the next one to have its ID", func() bool { return m.state("c").Ready })
	w.config(b, 4)
	w.equal(a, b, c)
	w.config(c, 5)
	w.config(b, 2) // a moment later
	w.equal(a, b, c)
	m.stop()

	must(t, b.Kill()) // it is away, with the ID 2
	d := w.remote("d", 2)
	w.join(d)
	next := w.mirror()
	waittest.Until(t, "another one to have its ID", func() bool { return next.state("d").Ready })
	w.distinct()
	if _, there := w.copied()[wire.ClusterConfigKey("b")]; there {
		t.Error("the configuration of who was away is still there")
	}
}

// TestTheClaimPolicy: a cluster that it does not grant is not copied, or no longer copied, and a cluster that had an ID
// before a change of the leader keeps it while it is not connected.
func TestTheClaimPolicy(t *testing.T) {
	t.Parallel()
	granted, state := new(claims.Current), t.TempDir()
	grant := func(policy string) {
		p, err := claims.Parse([]byte(policy))
		must(t, err)
		granted.Set(p)
	}
	with := func(p *Params) { p.Granted, p.StateDir = granted, state }
	w, a, m := copying(t, with)
	b := w.remote("b", 2)
	grant("clusters: {a: {id: 7}, b: {id: 2}}")
	w.join(b)
	waittest.Until(t, "a to be refused", func() bool { return m.state("a").Code == codes.ClusterIDNotPinned })
	waittest.Until(t, "its copy to go", func() bool {
		return len(w.cache(wire.ClusterConfigKey("a")))+len(w.cache(wire.IPs.Prefix("a", true))) == 0
	})
	grant("{default: deny, clusters: {a: {id: 1}}}")
	waittest.Until(t, "b not to be admitted", func() bool { return m.state("b").Code == codes.ClusterNotAdmitted })
	waittest.Until(t, "a to be copied", func() bool { return m.state("a").Ready })
	granted.Set(nil)
	w.equal(a, b)
	m.stop()

	must(t, b.Kill())
	c := w.remote("c", 2)
	w.join(c)
	next := w.mirror(with)
	waittest.Until(t, "the ID to be kept", func() bool { return next.state("c").Code == codes.ClusterIDRemembered })
	if _, there := w.copied()[wire.ClusterConfigKey("c")]; there {
		t.Error("it is copied")
	}
	grant("clusters: {c: {id: 2}}") // which takes it from who is away
	waittest.Until(t, "a pin to give it to the other one", func() bool { return next.state("c").Ready })
	w.distinct()
}

// distinct looks at all that our own etcd ever had: no two configurations have had one ID.
func (w *world) distinct() {
	w.t.Helper()
	w.marked()
	ids := make(map[string]uint32)
	for _, e := range w.history(1) {
		name, is := strings.CutPrefix(string(e.Kv.Key), wire.ClusterConfigPrefix+"/")
		if !is {
			continue
		}
		delete(ids, name)
		if e.Type == clientv3.EventTypeDelete {
			continue
		}
		cfg, err := wire.DecodeClusterConfig(e.Kv.Value)
		must(w.t, err)
		for other, id := range ids {
			if id == cfg.ID {
				w.t.Errorf("at revision %d %s has the ID %d, and %s as well", e.Kv.ModRevision, name, id, other)
			}
		}
		ids[name] = cfg.ID
	}
	if len(ids) < 2 {
		w.t.Errorf("there are %d configurations at the end", len(ids))
	}
}
