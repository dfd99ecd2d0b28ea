package mirror

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/recorded"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// recordedCluster runs the etcd of a cluster with all that was recorded of it,
// joins it, and returns what a mirror is to have of it, canaries without values.
func (w *world) recordedCluster(cluster string, config, copied []byte) map[string]string {
	w.t.Helper()
	etcd := etcdtest.StartProcess(w.t)
	client := etcd.Client(w.t)
	put := func(key string, value []byte) {
		w.t.Helper()
		_, err := client.Put(w.t.Context(), key, string(value))
		must(w.t, err)
	}
	want := map[string]string{wire.ClusterConfigKey(cluster): string(copied)}
	put(wire.ClusterConfigKey(cluster), config)
	for _, file := range []string{
		recorded.Nodes, recorded.Services, recorded.EndpointSlices, recorded.ServiceExports, recorded.Identities, recorded.IPs,
	} {
		for _, v := range recorded.Vectors(w.t, file) {
			if strings.Contains(v.CacheKey, "/v1/"+cluster+"/") {
				put(v.Key, v.Value)
				want[v.CacheKey] = string(v.Value)
			}
		}
	}
	for _, r := range wire.Resources() {
		put(wire.SyncedKey(cluster, r, false), []byte("now"))
		want[wire.SyncedKey(cluster, r, true)] = ""
	}
	text, err := os.ReadFile(etcd.ConfigFile(w.t))
	must(w.t, err)
	must(w.t, os.WriteFile(filepath.Join(w.dir, cluster), text, 0o600))
	return want
}

// TestGoldenCopiesInEtcd: remote clusters have every recorded key. The own etcd
// then has each of them where it was recorded in a copy, byte for byte, those that
// a reader refuses included, and nothing else.
func TestGoldenCopiesInEtcd(t *testing.T) {
	t.Parallel()
	const (
		config = `{"id":%d,"capabilities":{"serviceExportsEnabled":true,"endpointSlicesExportMode":"services-and-endpointslices"}}`
		copied = `{"id":%d,"capabilities":{"syncedCanaries":true,"cached":true,"serviceExportsEnabled":true,"endpointSlicesExportMode":"services-and-endpointslices"}}`
	)
	w := newWorld(t)
	want := make(map[string]string)
	clusters := []string{"cluster2", "cluster3", "c", recorded.Widest().Name}
	for i, cluster := range clusters {
		maps.Copy(want, w.recordedCluster(cluster, fmt.Appendf(nil, config, 7+i), fmt.Appendf(nil, copied, 7+i)))
	}
	if len(want) != 10+12+9+8+11+13+len(clusters)*(1+len(wire.Resources())) {
		t.Fatalf("%d keys: not all vectors are of these clusters", len(want))
	}
	w.copies(want)
}

// TestGoldenCopyOfAConfigInEtcd: the configuration that was recorded of cluster2
// says that it exports no services, so that the copy has none of its exports.
func TestGoldenCopyOfAConfigInEtcd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	configs := recorded.Vectors(t, recorded.ClusterConfigs)
	want := w.recordedCluster("cluster2", configs[0].Value, configs[1].Value)
	maps.DeleteFunc(want, func(key, _ string) bool {
		return strings.HasPrefix(key, wire.ServiceExports.Prefix("cluster2", true))
	})
	w.copies(want)
}

// copies waits until a mirror has copied everything, and compares.
func (w *world) copies(want map[string]string) {
	w.t.Helper()
	canaries := 0
	for key := range want {
		if strings.HasPrefix(key, wire.SyncedPrefix+"/") {
			canaries++
		}
	}
	w.mirror()
	waittest.Until(w.t, "the canaries", func() bool { return len(w.cache(wire.SyncedPrefix+"/")) == canaries })
	if d := cmp.Diff(want, w.copied()); d != "" {
		w.t.Errorf("what is in etcd (-recorded +got):\n%s", d)
	}
}
