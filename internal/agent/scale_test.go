package agent_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/agent/agenttest"
	"github.com/mesh-agent/mesh-agent/internal/exit"
	"github.com/mesh-agent/mesh-agent/internal/meshtest"
	"github.com/mesh-agent/mesh-agent/internal/sim/contents"
	"github.com/mesh-agent/mesh-agent/pkg/api"
)

// smallClusters describes clusters that hold a little of everything. The last
// ones have an etcd of their own each, the others share one.
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

// metrics are the series with their values.
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

// A mesh is as large as its cluster IDs allow: 254 others.
func TestAsManyClustersAsThereAreIDs(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("long: make test-all")
	}
	const clusters, own = 254, 8
	m := meshtest.Run(t, smallClusters(clusters, own)...)
	a := agenttest.StartAgent(t, m.Dir(), "--cluster-name", "own", "--cluster-id", "255")
	if out, errs, code := a.Call("status", "--wait", "--for=fresh", "--timeout", "10m"); code != exit.OK {
		t.Fatalf("status --wait: exit %d\n%s%s", code, out, errs)
	}
	st := a.Status()
	if s := st.Summary; s.Clusters != clusters || s.ClustersReady != clusters || s.Nodes != clusters || s.Identities != 4*clusters || st.State != api.StateReady {
		t.Errorf("%s: %+v", st.State, st.Summary)
	}
	for _, c := range st.Clusters {
		r, err := m.Cluster(c.Name)
		agenttest.Must(t, err)
		want := r.Cluster()
		if c.ID != want.ID || c.Cached != (want.Mode == contents.Cached) || c.Failures != 0 || c.Counts.Nodes != 1 || c.Counts.Services != 2 || c.Counts.Identities != 4 || c.Counts.IPs != 8 {
			t.Errorf("%+v", c)
		}
	}
	// What a cluster costs: its controller, its sources with a stream each, the
	// configuration and the canaries; and a connection for each etcd.
	now := metrics(a)
	t.Logf("%.0f goroutines, %.0f files, %.0f MiB resident", now["go_goroutines"], now["process_open_fds"], now["process_resident_memory_bytes"]/(1<<20))
	if n := now["go_goroutines"]; n > 40*clusters {
		t.Errorf("%.0f goroutines for %d clusters", n, clusters)
	}
	if n := now["process_open_fds"]; n > 40+own {
		t.Errorf("%.0f files for %d connections", n, own+1)
	}
}
