package sim

import (
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
)

func TestPutAndDelete(t *testing.T) {
	t.Parallel()
	r := loadCluster(t, contents.Default("cluster2", 2), Options{Plain: true})
	ctx := testContext(t)
	before := readAll(t, r.Client())
	key := slices.Min(slices.Collect(maps.Keys(of(r, wire.Nodes))))
	must(t, r.Put(ctx, "new", []byte("1")))
	must(t, r.Put(ctx, "new", []byte("2")))
	must(t, r.Put(ctx, key, []byte("3")))
	must(t, r.Delete(ctx, wire.SyncedKey("cluster2", wire.IPs, false)))
	checkEqual(t, r)
	if got := r.Contents(); got["new"] != "2" || got[key] != "3" {
		t.Errorf("contents say %q and %q", got["new"], got[key])
	}
	must(t, r.Delete(ctx, key))
	checkEqual(t, r)
	wantRefused(t, r.Delete(ctx, key), false, "has no key "+key)
	wantRefused(t, r.Put(ctx, "", nil), true, "empty")
	churn(t, r, 500) // this may write the node again
	checkEqual(t, r)
	mend(t, r)
	after := checkContents(t, r)
	if _, ok := after["new"]; ok || after[wire.SyncedKey("cluster2", wire.IPs, false)] == (kv{}) || after[key].value == "" {
		t.Errorf("not mended: %d keys, there were %d", len(after), len(before))
	}
}

func TestMalformedValues(t *testing.T) {
	t.Parallel()
	c := contents.Default("cluster2", 2)
	c.ServiceExports = true
	r := loadCluster(t, c, Options{Plain: true})
	ctx := testContext(t)
	seen := map[string]bool{}
	for _, kind := range Kinds() {
		before := r.Contents()
		key, err := r.Malform(ctx, kind)
		must(t, err)
		if before[key] == "" || r.Contents()[key] != contents.Malformed {
			t.Errorf("%s: %s is %q, it was %q", kind, key, r.Contents()[key], before[key])
		}
		seen[key] = true
	}
	again, err := r.Malform(ctx, "nodes")
	if err != nil || seen[again] {
		t.Errorf("malformed %s twice: %v", again, err)
	}
	checkEqual(t, r)
	_, err = r.Malform(ctx, "config")
	wantRefused(t, err, false, "cluster-config/cluster2")
	_, err = r.Malform(ctx, "pods")
	wantRefused(t, err, true, "config, nodes, services")
	if n, err := r.Mend(ctx); n != len(Kinds())+1 || err != nil {
		t.Errorf("%d keys mended: %v", n, err)
	}
	checkContents(t, r)
}

func TestConfigurationChanges(t *testing.T) {
	t.Parallel()
	r := loadCluster(t, contents.Default("cluster2", 2), Options{Plain: true})
	ctx := testContext(t)
	config := func() wire.ClusterConfig {
		t.Helper()
		checkEqual(t, r)
		cfg, err := wire.DecodeClusterConfig([]byte(r.Contents()[wire.ClusterConfigKey("cluster2")]))
		must(t, err)
		return cfg
	}
	for name, tc := range map[string]struct {
		change ConfigChange
		want   string
	}{
		"nothing":            {ConfigChange{}, "--delete alone"},
		"delete and more":    {ConfigChange{ID: 3, Delete: true}, "--delete alone"},
		"ID out of range":    {ConfigChange{ID: 256}, "1..255"},
		"unknown capability": {ConfigChange{Capabilities: map[string]string{"unknown": "true"}}, "there are syncedCanaries"},
		"wrong type":         {ConfigChange{Capabilities: map[string]string{"cached": "maybe"}}, "cached=maybe"},
	} {
		err := r.Configure(ctx, tc.change)
		wantRefused(t, err, true, tc.want)
		if cfg := config(); cfg.ID != 2 || !cfg.Capabilities.SyncedCanaries {
			t.Errorf("%s: changed to %+v", name, cfg)
		}
	}
	must(t, r.Configure(ctx, ConfigChange{Capabilities: map[string]string{"syncedCanaries": "false", "endpointSlicesExportMode": "x", "serviceExportsEnabled": "null"}}))
	if c := config().Capabilities; c.SyncedCanaries || c.EndpointSlicesExportMode != "x" || c.ServiceExportsEnabled != nil || c.MaxConnectedClusters != 255 {
		t.Errorf("capabilities are %+v", c)
	}
	must(t, r.Configure(ctx, ConfigChange{Delete: true}))
	if _, ok := readAll(t, r.Client())[wire.ClusterConfigKey("cluster2")]; ok {
		t.Error("the configuration is not deleted")
	}
	must(t, r.Configure(ctx, ConfigChange{Capabilities: map[string]string{"maxConnectedClusters": "511"}}))
	if c := config().Capabilities; !c.SyncedCanaries || c.MaxConnectedClusters != 511 {
		t.Errorf("capabilities are %+v", c)
	}
}

func TestNewClusterIDIsEverywhere(t *testing.T) {
	t.Parallel()
	for _, mode := range []contents.Mode{contents.Remote, contents.Cached, contents.Local} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			c := contents.Default("cluster2", 2)
			c.Mode = mode
			r := loadCluster(t, c, Options{Plain: true})
			ctx := testContext(t)
			churn(t, r, 500) // also writes identities without a pod
			before := readAll(t, r.Client())
			must(t, r.Configure(ctx, ConfigChange{ID: 9}))
			if r.Cluster().ID != 9 {
				t.Errorf("the cluster says that it is %d", r.Cluster().ID)
			}
			checkEqual(t, r)
			if mode == contents.Remote {
				checkContents(t, r) // this decodes the values with the ID
			}
			after := readAll(t, r.Client())
			if len(after) != len(before) {
				t.Errorf("%d keys, there were %d", len(after), len(before))
			}
			for key := range after {
				if _, ok := before[key]; ok == strings.Contains(key, "/identities/v1/") && !announced(key) {
					t.Errorf("%s: there before %t", key, ok)
				}
			}
			churn(t, r, 500)
			checkEqual(t, r)
			must(t, r.Configure(ctx, ConfigChange{ID: 2, Capabilities: map[string]string{"syncedCanaries": "true"}}))
			checkEqual(t, r)
		})
	}
}

func TestChurnRateChanges(t *testing.T) {
	t.Parallel()
	r := loadCluster(t, contents.Default("cluster2", 2), Options{Plain: true})
	ctx, stop := testContext(t), running(t, r.etcd.run)
	watch := r.Client().Watch(ctx, wire.StatePrefix, clientv3.WithPrefix())
	must(t, r.SetChurn(500))
	await(t, watch, 50)
	wantRefused(t, r.SetChurn(-1), true, "-1")
	must(t, r.SetChurn(0))
	if s, err := r.State(ctx); err != nil || s.Churn != 0 {
		t.Errorf("state %+v, %v", s, err)
	}
	stop()
	checkContents(t, r)
}

func TestMeshFaults(t *testing.T) {
	t.Parallel()
	m := openMesh(t, Options{Plain: true}, contents.Default("cluster1", 1), contents.Default("cluster2", 2))
	ctx := testContext(t)
	must(t, m.Load(ctx, nil))
	one, err := m.Cluster("cluster1")
	must(t, err)
	two, err := m.Cluster("cluster2")
	must(t, err)
	_, err = m.Cluster("cluster3")
	wantRefused(t, err, false, "there are cluster1, cluster2")

	file := filepath.Join(m.Dir(), "cluster1")
	wantRefused(t, m.Add(one), false, file)
	must(t, m.Remove(one))
	wantRefused(t, m.Remove(one), false, file)
	if states, err := m.State(ctx, m.Clusters()...); err != nil || states[0].ClientFile != "" || states[1].ClientFile == "" || exists(file) {
		t.Errorf("states %+v, %v", states, err)
	}
	must(t, m.Add(one))
	if !exists(file) {
		t.Error("the file is not there again")
	}

	addr := two.Sample().Pod
	key, other, err := m.Claim(ctx, one, addr)
	if err != nil || other != "cluster2" || !strings.HasSuffix(key, addr.String()) {
		t.Errorf("claimed %s of %s: %v", key, other, err)
	}
	checkEqual(t, one)
	_, _, err = m.Claim(ctx, one, addr)
	wantRefused(t, err, false, "already")
	_, _, err = m.Claim(ctx, one, netip.MustParseAddr("192.0.2.1"))
	wantRefused(t, err, false, addr.String())
	mend(t, one)
	checkContents(t, one)
}
