package sim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
)

func inMode(m contents.Mode, c contents.Cluster) contents.Cluster {
	c.Mode = m
	return c
}

func TestCachedClustersShareAnEtcd(t *testing.T) {
	t.Parallel()
	own := contents.Default("cluster1", 1)
	two, three := inMode(contents.Cached, contents.Default("cluster2", 2)), inMode(contents.Cached, contents.Default("cluster3", 3))
	three.ServiceExports = true
	m := openMesh(t, Options{}, own, two, three)
	ctx := testContext(t)
	must(t, m.Load(ctx, nil))
	a, b := m.Clusters()[1], m.Clusters()[2]
	if a.Endpoint() != b.Endpoint() || a.Endpoint() == m.Clusters()[0].Endpoint() {
		t.Errorf("endpoints are %s and %s", a.Endpoint(), b.Endpoint())
	}
	fileA, _ := os.ReadFile(m.ClientFile(a))
	fileB, _ := os.ReadFile(m.ClientFile(b))
	if len(fileA) == 0 || string(fileA) != string(fileB) {
		t.Errorf("client files differ:\n%s\n%s", fileA, fileB)
	}
	readThrough(t, m.ClientFile(b), "cluster2")
	const want = `{"id":3,"capabilities":{"syncedCanaries":true,"cached":true,"maxConnectedClusters":255,"serviceExportsEnabled":true,"endpointSlicesExportMode":"services-and-endpointslices"}}`
	if got := b.Contents()[wire.ClusterConfigKey("cluster3")]; got != want {
		t.Errorf("configuration is %s", got)
	}
	churn(t, b, 300)
	checkShared(t, a, b)

	_, err := a.Malform(ctx, "ips")
	must(t, err)
	must(t, a.Delete(ctx, wire.SyncedKey("cluster2", wire.Nodes, true)))
	must(t, b.Configure(ctx, ConfigChange{ID: 7}))
	checkShared(t, a, b)
	wantRefused(t, a.Put(ctx, wire.Nodes.Key("cluster3", true, "n"), nil), false, "belongs to cluster cluster3")
	must(t, a.Wipe(ctx))
	if n := len(a.Contents()) + len(b.Contents()); n != 0 {
		t.Errorf("%d keys expected after a wipe", n)
	}
	for _, r := range []*Running{a, b} {
		if s, err := r.State(ctx); err != nil || s.State != "empty" || s.CachedIn != "cluster2" || *s.Keys != 0 {
			t.Errorf("state %+v, %v", s, err)
		}
		mend(t, r)
	}
	checkShared(t, a, b)
	must(t, b.Replace(ctx))
	checkShared(t, a, b)
}

// checkShared compares an etcd with the contents of its two clusters, as the agent sees them, and checks that all keys
// are where KVStoreMesh writes them.
func checkShared(t *testing.T, a, b *Running) {
	t.Helper()
	agent := asAgent(t, a)
	read(t, a, agent, wire.Nodes) // until it answers
	got := map[string]string{}
	for _, p := range []string{wire.CachePrefix + "/", wire.ClusterConfigPrefix + "/"} {
		resp, err := agent.Get(testContext(t), p, clientv3.WithPrefix())
		must(t, err)
		for _, kv := range resp.Kvs {
			got[string(kv.Key)] = string(kv.Value)
		}
	}
	want := a.Contents()
	for key, value := range b.Contents() {
		want[key] = value
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("etcd differs (-simulator +etcd):\n%s", diff)
	}
	all := readAll(t, a.Client())
	if _, ok := all[wire.HeartbeatKey]; !ok {
		t.Error("no heartbeat")
	}
	for _, r := range []*Running{a, b} {
		counted := int64(0)
		for key := range all {
			if strings.HasPrefix(key, wire.StatePrefix+"/") {
				t.Errorf("%s is no cached key", key)
			}
			if r.owns(key) {
				counted++
			}
		}
		if s, err := r.State(testContext(t)); err != nil || *s.Keys != counted {
			t.Errorf("%d keys of %s in etcd, state %+v, %v", counted, r.c.Name, s, err)
		}
	}
	for _, key := range []string{
		wire.SyncedKey("cluster2", wire.IPs, true),
		wire.Identities.Key("cluster3", true, ""), wire.IPs.Key("cluster3", true, ""), wire.ServiceExports.Key("cluster3", true, ""),
	} {
		if resp, err := agent.Get(testContext(t), key, clientv3.WithPrefix()); err != nil || resp.Count == 0 && !overridden(a, key) {
			t.Errorf("nothing at %s: %v", key, err)
		}
	}
}

func overridden(r *Running, key string) bool { _, ok := r.overrides[key]; return ok }

func TestLocalCluster(t *testing.T) {
	t.Parallel()
	m := openMesh(t, Options{}, contents.Default("cluster1", 1), inMode(contents.Local, contents.Default("home", 2)))
	ctx := testContext(t)
	must(t, m.Load(ctx, nil))
	home, ok := m.Local()
	if !ok || home.Cluster().Name != "home" {
		t.Fatal("no local cluster")
	}
	file := m.ClientFile(home)
	if exists(filepath.Join(m.Dir(), "home")) || !exists(file) || filepath.Dir(file) == m.Dir() {
		t.Errorf("the local cluster's file is %s", file)
	}
	readThrough(t, file, "home")
	const want = `{"id":2,"capabilities":{"maxConnectedClusters":255,"serviceExportsEnabled":false,"endpointSlicesExportMode":"services-and-endpointslices"}}`
	if got := home.Contents()[wire.ClusterConfigKey("home")]; got != want {
		t.Errorf("configuration is %s", got)
	}
	checkEqual(t, home)
	for key, e := range readAll(t, home.Client()) {
		if strings.HasPrefix(key, wire.SyncedPrefix) {
			t.Errorf("a canary: %s", key)
		}
		if (e.lease == 0) != strings.HasPrefix(key, wire.Identities.StorePrefix(false)) {
			t.Errorf("%s has lease %x", key, e.lease)
		}
	}
	agent := asAgent(t, home)
	if _, err := agent.Put(ctx, "cilium/state/nodes/v1/home/agent", "x"); err != nil {
		t.Errorf("the agent may not write into its own cluster: %v", err)
	}
	if _, err := home.Malform(ctx, "nodes"); err != nil {
		t.Error(err)
	}
	if n, err := home.Mend(ctx); n != 1 || err != nil {
		t.Errorf("%d keys mended, also the agent's: %v", n, err)
	}
}
