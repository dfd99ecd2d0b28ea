package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/etcdtest"
)

// probes are the seconds between two probes of the own kvstore and of cluster1, and
// the size of the own cluster, as the program shows them.
func (a *process) probes() (own, remote, size float64) {
	a.t.Helper()
	if k := a.status().KVStore; k != nil {
		own = k.ProbeInterval
	}
	now := a.metrics()
	return own, now[`mesh_agent_clustermesh_remote_cluster_probe_interval_seconds{target_cluster="cluster1"}`], now["mesh_agent_cluster_size"]
}

// stretched is the interval between probes in a cluster of so many nodes.
func stretched(nodes float64) float64 { return max(10, 10*math.Log1p(nodes)/2) }

func near(a, b float64) bool { return math.Abs(a-b) < 0.01 }

// TestTheSizeOfTheClusterReachesEverySession: a size that is given holds in each mode,
// for the sessions with remote clusters and with the own kvstore, read and written.
func TestTheSizeOfTheClusterReachesEverySession(t *testing.T) {
	t.Parallel()
	remote, etcd := simulate(t, 1), etcdtest.Start(t)
	own := []string{"--cluster-name", "own", "--cluster-id", "9", "--cluster-size", "8000", "--kvstore-opt", "etcd.address=" + etcd.Endpoint()}
	remotes := []string{"--clustermesh-config", remote.Dir()}
	for _, m := range []mode{modeRun, modeMirror, modeOperate} {
		args := own
		if m != modeOperate {
			args = append(remotes, own...)
		}
		a := startMode(t, m, nil, args...)
		a.until("intervals of "+string(m)+" for 8,000 nodes", func() bool {
			own, far, size := a.probes()
			return near(own, stretched(8000)) && (near(far, stretched(8000)) || m == modeOperate) && size == 8000
		})
	}
}

// TestTheNodesOfTheOwnClusterAreCounted: those of its description, which come and go.
func TestTheNodesOfTheOwnClusterAreCounted(t *testing.T) {
	t.Parallel()
	remote, manifests := simulate(t, 1), t.TempDir()
	write := func(nodes int) {
		var text strings.Builder
		for i := range nodes {
			fmt.Fprintf(&text, "---\napiVersion: v1\nkind: Node\nmetadata: {name: n%d}\nstatus: {addresses: [{type: InternalIP, address: 10.7.%d.%d}]}\n", i, i/250, 1+i%250)
		}
		must(t, os.WriteFile(filepath.Join(manifests, "nodes.yaml"), []byte(text.String()), 0o600))
	}
	write(300)
	a := startAgent(t, remote.Dir(), "--cluster-name", "own", "--cluster-id", "9", "--local-manifests", manifests)
	for _, nodes := range []float64{300, 3} {
		write(int(nodes))
		a.until(fmt.Sprint("intervals for ", nodes, " nodes"), func() bool {
			_, far, size := a.probes()
			return near(far, stretched(nodes)) && size == nodes
		})
	}
}
