// Package meshtest has what tests of several packages need: a mesh of simulated clusters
// that runs until the end of the test.
package meshtest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/internal/sim"
	"github.com/mesh-agent/mesh-agent/internal/sim/contents"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Clusters are n small clusters, named cluster1 and so on.
func Clusters(n int) []contents.Cluster {
	var all []contents.Cluster
	for i := range n {
		id := uint32(i + 1)
		all = append(all, contents.Default(fmt.Sprint("cluster", id), id))
	}
	return all
}

// Open starts a cluster as Mesh does. Nothing renews its leases.
func Open(t testing.TB, c contents.Cluster, o sim.Options) *sim.Running {
	t.Helper()
	return Mesh(t, o, c).Clusters()[0]
}

// Mesh starts clusters that are loaded, with their client files. They are closed at the
// end of the test.
func Mesh(t testing.TB, o sim.Options, clusters ...contents.Cluster) *sim.Mesh {
	t.Helper()
	m, err := sim.OpenMesh(t.Context(), clusters, o)
	if err == nil {
		t.Cleanup(func() {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
		err = m.Load(t.Context(), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Run starts clusters as Mesh does, and keeps them alive until the end of the test.
func Run(t testing.TB, clusters ...contents.Cluster) *sim.Mesh {
	t.Helper()
	m := Mesh(t, sim.Options{}, clusters...)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return m
}

// Equal compares what a cluster has in etcd with what the simulator says of it.
func Equal(t testing.TB, r *sim.Running) {
	t.Helper()
	resp, err := r.Client().Get(t.Context(), "\x00", clientv3.WithFromKey())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range resp.Kvs {
		if key := string(e.Key); key != wire.HeartbeatKey && !strings.HasPrefix(key, wire.SyncedPrefix+"/") { // whose values are times
			got[key] = string(e.Value)
		}
	}
	if diff := cmp.Diff(r.Contents(), got); diff != "" {
		t.Errorf("etcd differs from what the simulator says (-simulator +etcd):\n%s", diff)
	}
}
