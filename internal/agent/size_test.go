package agent_test

import (
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest"
	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// probes returns the seconds between two probes of the own kvstore and of cluster1, and the size of the own cluster, as
// reported by the program.
func probes(a *agenttest.Process) (own, remote, size float64) {
	a.T.Helper()
	if k := a.Status().KVStore; k != nil {
		own = k.ProbeInterval
	}
	now := metrics(a)
	return own, now[`mesh_agent_clustermesh_remote_cluster_probe_interval_seconds{target_cluster="cluster1"}`], now["mesh_agent_cluster_size"]
}

// stretched is the interval between probes in a cluster of this many nodes.
func stretched(nodes float64) float64 { return max(10, 10*math.Log1p(nodes)/2) }

func near(a, b float64) bool { return math.Abs(a-b) < 0.01 }

// TestTheSizeOfTheClusterReachesEverySession: a configured size applies in each mode, to the sessions with remote
// clusters and with the own kvstore, for reading and for writing.
func TestTheSizeOfTheClusterReachesEverySession(t *testing.T) {
	t.Parallel()
	remote, etcd := meshtest.Run(t, meshtest.Clusters(1)...), etcdtest.Start(t)
	own := []string{"--cluster-name", "own", "--cluster-id", "9", "--cluster-size", "8000", "--kvstore-opt", "etcd.address=" + etcd.Endpoint()}
	remotes := []string{"--clustermesh-config", remote.Dir()}
	for _, m := range []config.Mode{config.ModeRun, config.ModeMirror, config.ModeOperate} {
		args := own
		if m != config.ModeOperate {
			args = append(remotes, own...)
		}
		a := agenttest.StartMode(t, m, nil, args...)
		a.Until("intervals of "+string(m)+" for 8,000 nodes", func() bool {
			own, far, size := probes(a)
			return near(own, stretched(8000)) && (near(far, stretched(8000)) || m == config.ModeOperate) && size == 8000
		})
	}
}

// TestTheNodesOfTheOwnClusterAreCounted: the nodes of its description, which are added and removed.
func TestTheNodesOfTheOwnClusterAreCounted(t *testing.T) {
	t.Parallel()
	remote, manifests := meshtest.Run(t, meshtest.Clusters(1)...), t.TempDir()
	write := func(nodes int) {
		var text strings.Builder
		for i := range nodes {
			fmt.Fprintf(&text, "---\napiVersion: v1\nkind: Node\nmetadata: {name: n%d}\nstatus: {addresses: [{type: InternalIP, address: 10.7.%d.%d}]}\n", i, i/250, 1+i%250)
		}
		agenttest.Must(t, os.WriteFile(filepath.Join(manifests, "nodes.yaml"), []byte(text.String()), 0o600))
	}
	write(300)
	a := agenttest.StartAgent(t, remote.Dir(), "--cluster-name", "own", "--cluster-id", "9", "--local-manifests", manifests)
	for _, nodes := range []float64{300, 3} {
		write(int(nodes))
		a.Until(fmt.Sprint("intervals for ", nodes, " nodes"), func() bool {
			_, far, size := probes(a)
			return near(far, stretched(nodes)) && size == nodes
		})
	}
}

// TestTheCountedNodesReachEverySession: an agent that reads 8,000 own nodes from its own kvstore stretches the probe
// intervals of all sessions, including that one, and the age above which a copy is stale.
func TestTheCountedNodesReachEverySession(t *testing.T) {
	waittest.Long(t)
	t.Parallel()
	const nodes = 8000
	remote, etcd := meshtest.Run(t, meshtest.Clusters(1)...), etcdtest.Start(t)
	client := etcd.Client(t)
	var puts []clientv3.Op
	for i := range nodes {
		n := wire.Node{Cluster: "own", ClusterID: 9, Name: fmt.Sprint("n", i), IPAddresses: []wire.NodeAddress{{Type: "InternalIP", IP: net.IPv4(10, 7, byte(i/250), byte(1+i%250))}}}
		if puts = append(puts, clientv3.OpPut(n.Key(), string(n.Encode()))); len(puts) == 100 || i == nodes-1 {
			_, err := client.Txn(t.Context()).Then(puts...).Commit()
			agenttest.Must(t, err)
			puts = nil
		}
	}
	a := agenttest.StartAgent(t, remote.Dir(), "--cluster-name", "own", "--cluster-id", "9", "--kvstore-opt", "etcd.address="+etcd.Endpoint())
	a.Until("intervals for 8,000 nodes", func() bool {
		own, far, size := probes(a)
		return near(own, stretched(nodes)) && near(far, stretched(nodes)) && size == nodes
	})
}

// TestOperationsOnRemoteKVStoresAreTraced, at debug level.
func TestOperationsOnRemoteKVStoresAreTraced(t *testing.T) {
	t.Parallel()
	a := agenttest.StartAgent(t, meshtest.Run(t, meshtest.Clusters(1)...).Dir(), "--log-level", "debug")
	a.Until("the cluster", func() bool { return len(a.ReadyClusters()) == 1 })
	endpoint := agenttest.List[api.Cluster](a, "clusters")[0].Endpoints[0]
	_, address, _ := strings.Cut(endpoint, "://")
	a.Until("an operation on the remote kvstore in the log", func() bool {
		return slices.ContainsFunc(strings.Split(a.Log.String(), "\n"), func(line string) bool {
			return strings.Contains(line, "Kvstore operation") && strings.Contains(line, address)
		})
	})
}

// smallClusters describes clusters with a few objects of each kind. The last ones have an etcd each, the others share
// one.
func smallClusters(n, own int) []contents.Cluster {
	all := make([]contents.Cluster, n)
	for i := range all {
		c := contents.Default(fmt.Sprint("c", i+1), uint32(i+1))
		c.Nodes, c.Services, c.Backends, c.Identities, c.Addresses = 1, 2, 2, 4, 8
		if i < n-own {
			c.Mode = contents.Cached
		}
		all[i] = c
	}
	return all
}

// metrics returns the series with their values.
func metrics(a *agenttest.Process) map[string]float64 {
	a.T.Helper()
	values := map[string]float64{}
	for name, text := range series(a.T, a, "") {
		if v, err := strconv.ParseFloat(text, 64); err == nil {
			values[name] = v
		}
	}
	return values
}

// isFresh reports whether a cluster's data are current.
func isFresh(c api.Cluster) bool {
	return c.State == api.StateReady && c.Freshness.Worst.State == "synced"
}

// A mesh has at most as many clusters as there are cluster IDs: 254 others.
func TestAsManyClustersAsThereAreIDs(t *testing.T) {
	t.Parallel()
	waittest.Long(t)
	const clusters, own = 254, 8
	m := meshtest.Run(t, smallClusters(clusters, own)...)
	a := agenttest.StartAgent(t, m.Dir(), "--cluster-name", "own", "--cluster-id", "255")
	if out, errs, code := a.Call("status", "--wait", "--for=fresh", "--timeout", "10m"); code != exit.OK {
		t.Fatalf("status --wait: exit %d\n%s%s", code, out, errs)
	}
	var st api.Status
	waittest.Until(t, "the agent to have everything", func() bool { // on a busy machine one of the clusters may be late for a moment
		st = a.Status()
		s := st.Summary
		return s.Clusters == clusters && s.ClustersReady == clusters && s.Nodes == clusters && s.Identities == 4*clusters && st.State == api.StateReady
	}, func() string {
		return fmt.Sprintf("%s: %+v; late: %+v", st.State, st.Summary, slices.DeleteFunc(st.Clusters, isFresh))
	})
	for _, c := range st.Clusters {
		r, err := m.Cluster(c.Name)
		agenttest.Must(t, err)
		want := r.Cluster()
		if c.ID != want.ID || c.Cached != (want.Mode == contents.Cached) || c.Counts.Nodes != 1 || c.Counts.Services != 2 || c.Counts.Identities != 4 || c.Counts.IPs != 8 {
			t.Errorf("%+v", c)
		}
	}
	// The cost of a cluster: its controller, its sources with a stream each, the configuration and the canaries; and a
	// connection for each etcd.
	now := metrics(a)
	t.Logf("%.0f goroutines, %.0f files, %.0f MiB resident", now["go_goroutines"], now["process_open_fds"], now["process_resident_memory_bytes"]/(1<<20))
	if n := now["go_goroutines"]; n > 40*clusters {
		t.Errorf("%.0f goroutines for %d clusters", n, clusters)
	}
	if n := now["process_open_fds"]; n > 40+own {
		t.Errorf("%.0f files for %d connections", n, own+1)
	}
}
