package agent_test

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/internal/agent/agenttest"
	"github.com/mesh-agent/mesh-agent/internal/meshtest"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Three clusters: the third is the agent's own, read from its kvstore; the
// first claims one of its addresses.
func TestTheLocalClusterAndTwoRemotes(t *testing.T) {
	t.Parallel()
	m := meshtest.Run(t, meshtest.Clusters(3)...)
	thief, own := m.Clusters()[0], m.Clusters()[2]
	address := own.Sample().Pod
	claim := wire.IPIdentityPair{IP: net.IP(address.AsSlice()), Identity: 1<<16 + 1, Pod: "thief", Namespace: "ns"}
	if _, err := thief.Client().Put(t.Context(), claim.Key(), string(claim.Encode())); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "etcd.config")
	a := agenttest.StartAgent(t, m.Dir(), "--cluster-name", "cluster3", "--cluster-id", "3", "--kvstore-opt", "etcd.config="+file)
	a.Until("the missing file to be reported", func() bool {
		s := a.Status()
		return s.KVStore != nil && strings.Contains(s.KVStore.Message, file) && s.State == api.StateStarting && !s.Ready
	})
	agenttest.Must(t, os.Rename(filepath.Join(m.Dir(), "cluster3"), file))
	a.Until("everything to be well", func() bool { return a.Status().State == api.StateReady })
	want := agenttest.Expected(t, m)
	a.Until("the view of all three", func() bool { return cmp.Equal(want, a.Shown()) })

	s := a.Status()
	if len(s.Clusters) != 2 || s.Summary.Clusters != 2 || s.Summary.ClustersReady != 2 {
		t.Errorf("the own cluster counts as a remote one: %+v", s.Summary)
	}
	k := s.KVStore
	if !k.Connected || k.Lease != "" || k.HeartbeatAgeSeconds == nil || len(k.Endpoints) != 1 || k.Counts.Nodes == 0 || k.ConfigFile != file || !k.Synced.IPs {
		t.Errorf("kvstore: %+v", k)
	}
	for _, svc := range agenttest.List[api.Service](a, "services") {
		for _, b := range svc.Backends {
			if b.Local != (b.Cluster == "cluster3") {
				t.Errorf("backend %s of %s: local is %t", b.IP, b.Cluster, b.Local)
			}
		}
	}
	l := a.Lookup(address.String())
	if l.Match == nil || l.Match.Cluster != "cluster3" || l.Match.Source != "kvstore" || l.Match.Claims != 1 || l.Freshness == nil || l.Freshness.State != "synced" {
		t.Errorf("lookup: match %+v, freshness %+v", l.Match, l.Freshness)
	}

	barred := func(l api.Lookup) bool {
		return slices.ContainsFunc(l.Candidates, func(c api.Candidate) bool {
			return c.Entry.Cluster == "cluster1" && !c.Won && strings.HasPrefix(c.Reason, "does not count: inside 10.3.0.0/24, a pod network of the own cluster")
		})
	}
	if !barred(l) {
		t.Errorf("the claim of the remote is not shown: %+v", l.Candidates)
	}

	// When the own claim goes, the remote's does not count either: the address is in
	// a pod network of the own nodes.
	if _, err := own.Client().Delete(t.Context(), wire.IPs.Key("cluster3", false, address.String())); err != nil {
		t.Fatal(err)
	}
	a.Until("the own pod network to count", func() bool {
		l := a.Lookup(address.String())
		return l.Match != nil && l.Match.Cluster == "cluster3" && l.Match.Kind == "pod-cidr" && barred(l)
	})

	found := false
	for _, h := range agenttest.List[api.Health](a, "health") {
		found = found || h.Name == "local-kvstore" && h.State == "ok" && h.Cluster == "cluster3"
	}
	if !found {
		t.Error("the local kvstore is not among the health of the connections")
	}
}
