package agent_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest"
)

// exported returns the service web with a session affinity, and its export, which was created in this year.
func exported(affinity string, year int) string {
	return strings.Replace(web, "  clusterIP:", "  sessionAffinity: "+affinity+"\n  clusterIP:", 1) + fmt.Sprintf(`---
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ServiceExport
metadata:
  name: web
  namespace: shop
  creationTimestamp: "%d-01-01T00:00:00Z"
`, year)
}

// TestTwoClustersOfOursDisagree: each publishes its export, and an agent of one of them reports that the session
// affinities differ, until they are equal.
func TestTwoClustersOfOursDisagree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	operate := func(name, id, manifest string) (etcd *etcdtest.Server, file string) {
		etcd, manifests := etcdtest.Start(t), t.TempDir()
		file = filepath.Join(manifests, "web.yaml")
		agenttest.Must(t, os.WriteFile(file, []byte(manifest), 0o600))
		a := agenttest.StartMode(t, config.ModeOperate, nil, "--cluster-name", name, "--cluster-id", id, "--local-manifests", manifests,
			"--kvstore-opt", "etcd.address="+etcd.Endpoint(), "--clustermesh-enable-mcs-api")
		if out, errs, code := a.Call("status", "--wait", "--timeout", "10m"); code != exit.OK {
			t.Fatalf("status --wait: exit %d\n%s%s", code, out, errs)
		}
		return etcd, file
	}
	east, _ := operate("east", "1", exported("ClientIP", 2025))
	west, file := operate("west", "2", exported("None", 2024))
	text, err := os.ReadFile(west.ConfigFile(t))
	agenttest.Must(t, err)
	agenttest.Must(t, os.WriteFile(filepath.Join(dir, "west"), text, 0o600))
	a := agenttest.StartMode(t, config.ModeRun, nil, "--cluster-name", "east", "--cluster-id", "1", "--kvstore-opt", "etcd.address="+east.Endpoint(), "--clustermesh-config", dir)
	conflict := "MESH-2152 service-affinity/shop/web west,east"
	a.Until("the conflict", func() bool { return slices.Equal(a.Conflicts(), []string{conflict}) })
	if all := agenttest.List[api.ServiceExport](a, "serviceexports"); len(all) != 2 || all[0].SessionAffinity != "ClientIP" || all[0].SessionAffinityTimeoutSeconds != 10800 || all[1].SessionAffinity != "None" {
		t.Errorf("%+v", all)
	}
	out, _, _ := a.Call("describe", "service", "shop/web")
	for _, part := range []string{
		"through the MCS API it exports it since 2025-01-01T00:00:00Z, with session affinity ClientIP for 10800 s", "cilium/state/serviceexports/v1/west/shop/web",
		"None in west, ClientIP for 10800 s in east; that of west counts",
	} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), part) {
			t.Errorf("describe does not say %q:\n%s", part, out)
		}
	}
	agenttest.Must(t, os.WriteFile(file, []byte(exported("ClientIP", 2024)), 0o600))
	a.Until("it to be over", func() bool { return len(a.Conflicts()) == 0 })
	if out, _, _ := a.Call("describe", "service", "shop/web"); strings.Contains(out, "ServiceExport") {
		t.Errorf("they agree, and describe says:\n%s", out)
	}
}

// TestExportsOfManifestsAlone: an agent without a kvstore reads its own exports from the manifests, and finds exports
// of other clusters that differ.
func TestExportsOfManifestsAlone(t *testing.T) {
	t.Parallel()
	manifests := t.TempDir()
	file := filepath.Join(manifests, "web.yaml")
	agenttest.Must(t, os.WriteFile(file, []byte(exported("ClientIP", 2025)), 0o600))
	a := agenttest.StartMode(t, config.ModeRun, nil, "--cluster-name", "east", "--cluster-id", "1", "--local-manifests", manifests)
	own := func() []api.ServiceExport { return agenttest.List[api.ServiceExport](a, "serviceexports") }
	a.Until("its own export", func() bool { return len(own()) == 1 })
	if e := own()[0]; e.Cluster != "east" || e.Namespace != "shop" || e.Name != "web" || e.SessionAffinity != "ClientIP" || e.Created.Year() != 2025 {
		t.Errorf("%+v", e)
	}
	if out, errs, code := a.Call("get", "serviceexports"); code != exit.OK || !strings.Contains(out, "web") {
		t.Errorf("get serviceexports: exit %d\n%s%s", code, out, errs)
	}
	agenttest.Must(t, os.WriteFile(file, []byte(exported("None", 2025)), 0o600))
	a.Until("its change", func() bool { all := own(); return len(all) == 1 && all[0].SessionAffinity == "None" })
	agenttest.Must(t, os.WriteFile(file, []byte(web), 0o600))
	a.Until("its end", func() bool { return len(own()) == 0 })
}

// Three clusters: the third one is the agent's own, read from its kvstore; the first one claims one of its addresses.
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
	want := expected(t, m)
	a.Until("the view of all three", func() bool { return cmp.Equal(want, shown(a)) })

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

	// Without the own claim, the remote one does not count either: the address is in a pod network of the own nodes.
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
