package sim

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/internal/waiting/waittest"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

func testContext(t *testing.T) context.Context {
	t.Helper()
	return waittest.Context(t)
}

func openCluster(t *testing.T, c Cluster, o Options) *Running {
	t.Helper()
	r, err := Open(testContext(t), c, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func loadCluster(t *testing.T, c Cluster, o Options) *Running {
	t.Helper()
	r := openCluster(t, c, o)
	if _, err := r.Load(testContext(t)); err != nil {
		t.Fatal(err)
	}
	return r
}

// readAll reads every key with a plain client.
func readAll(t *testing.T, c *clientv3.Client) map[string]kv {
	t.Helper()
	resp, err := c.Get(testContext(t), "\x00", clientv3.WithFromKey())
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]kv{}
	for _, e := range resp.Kvs {
		all[string(e.Key)] = kv{value: string(e.Value), lease: e.Lease, created: e.CreateRevision}
	}
	return all
}

type kv struct {
	value   string
	lease   int64
	created int64
}

// announced tells the keys whose values are times from the others.
func announced(key string) bool {
	return key == wire.HeartbeatKey || strings.HasPrefix(key, wire.SyncedPrefix+"/")
}

// checkContents compares etcd with the model, and decodes everything.
func checkContents(t *testing.T, r *Running) map[string]kv {
	t.Helper()
	all := readAll(t, r.Client())
	got := map[string]string{}
	for key, e := range all {
		if !announced(key) {
			got[key] = e.value
		}
	}
	want := r.Contents()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("etcd differs from the model (-model +etcd):\n%s", diff)
	}
	decodeAll(t, r.Cluster(), got)
	checkLeases(t, r, all)
	return all
}

// decodeAll reads every key as a reader of another cluster would.
func decodeAll(t *testing.T, c Cluster, contents map[string]string) map[wire.Resource]int {
	t.Helper()
	layout, err := wire.NewLayout(c.MaxConnectedClusters)
	if err != nil {
		t.Fatal(err)
	}
	e := wire.Expect{Cluster: c.Name, ClusterID: c.ID, LocalID: c.ID%c.MaxConnectedClusters + 1, Layout: layout}
	decoders := map[wire.Resource]func(string, []byte) error{
		wire.Nodes:          func(n string, v []byte) error { _, err := wire.DecodeNode(n, v, e); return err },
		wire.Services:       func(n string, v []byte) error { _, err := wire.DecodeService(n, v, e); return err },
		wire.EndpointSlices: func(n string, v []byte) error { _, err := wire.DecodeEndpointSlice(n, v, e); return err },
		wire.ServiceExports: func(n string, v []byte) error { _, err := wire.DecodeServiceExport(n, v, e); return err },
		wire.Identities:     func(n string, v []byte) error { _, err := wire.DecodeIdentity(n, v, e); return err },
		wire.IPs:            func(n string, v []byte) error { _, err := wire.DecodeIP(n, v, e); return err },
	}
	counts := map[wire.Resource]int{}
	for key, value := range contents {
		if key == wire.ClusterConfigKey(c.Name) {
			cfg, err := wire.DecodeClusterConfig([]byte(value))
			if err == nil {
				err = cfg.Validate(wire.ClusterInfo{Name: "reader", ID: e.LocalID, MaxConnectedClusters: c.MaxConnectedClusters})
			}
			if err != nil {
				t.Errorf("%s: %v", key, err)
			}
			continue
		}
		found := false
		for resource, decode := range decoders {
			if name, ok := strings.CutPrefix(key, resource.Prefix(c.Name, false)); ok {
				found = true
				counts[resource]++
				if err := decode(name, []byte(value)); err != nil {
					t.Errorf("%s: %v", key, err)
				}
			}
		}
		if !found {
			t.Errorf("%s belongs to no resource", key)
		}
	}
	return counts
}

func checkLeases(t *testing.T, r *Running, all map[string]kv) {
	t.Helper()
	keys := map[int64]int{}
	for key, e := range all {
		if e.lease == 0 {
			t.Errorf("%s has no lease", key)
		}
		keys[e.lease]++
	}
	if most := slices.Max(slices.Collect(maps.Values(keys))); most > r.Cluster().keysPerLease() {
		t.Errorf("%d keys on one lease, at most %d are allowed", most, r.Cluster().keysPerLease())
	}
}
