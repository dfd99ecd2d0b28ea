package monitoring

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
	"github.com/mesh-agent/mesh-agent/simtest/etcdserver"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest"
	"github.com/mesh-agent/mesh-agent/simtest/programtest"
	"github.com/mesh-agent/mesh-agent/simtest/sim"
)

// pathAlerts fire while one agent of two is cut off.
func pathAlerts() []string {
	return []string{"MeshClusterUnreachableFromNodes east", "MeshClusterUnreachableFromNodes west", "MeshPolicyHeld"}
}

const flaps = "MeshClusterFlapping east"

// processAlerts fire while agents are down, and, the last one, when an agent was started repeatedly.
func processAlerts() []string {
	return []string{"MeshAgentDown", "MeshAgentsDown", "MeshAgentAbsent", restarts, flaps}
}

const restarts = "MeshAgentRestarting"

// through gives an agent a mesh directory of its own, with a gate between the agent and each cluster.
func through(t *testing.T, m *sim.Mesh) (dir string, gates map[string]*gate) {
	t.Helper()
	dir, gates = t.TempDir(), make(map[string]*gate)
	for _, r := range m.Clusters() {
		name := r.Cluster().Name
		u, err := url.Parse(r.Endpoint())
		must(t, err)
		g := newGate(t, u.Host)
		text, err := os.ReadFile(filepath.Join(m.Dir(), name))
		must(t, err)
		programtest.Write(t, dir, name, strings.ReplaceAll(string(text), u.Host, g.Addr()))
		gates[name] = g
	}
	return dir, gates
}

// gate is an address that forwards connections to a server, and that can be shut.
type gate struct {
	*etcdserver.Gate
	t  *testing.T
	to string
}

func newGate(t *testing.T, to string) *gate {
	t.Helper()
	g := &gate{etcdserver.NewGate("127.0.0.1:0"), t, to}
	t.Cleanup(g.Close)
	g.open()
	return g
}

func (g *gate) open() {
	g.t.Helper()
	must(g.t, g.Open(g.to))
}

// TestPaths: one agent is cut off, from all clusters or repeatedly.
func TestPaths(t *testing.T) {
	t.Parallel()
	programtest.Find(t, "consumers", "prometheus")
	m := meshtest.Run(t, small("east", 1), small("west", 2))
	dir, gates := through(t, m)
	near, far := programtest.Reserve(t), programtest.Reserve(t)
	agenttest.StartAgent(t, m.Dir(), "--listen", near)
	agenttest.StartAgent(t, dir, "--listen", far)
	p := startPrometheus(t, target{"mesh-agent", near}, target{"mesh-agent", far})
	p.scraped(2)
	for _, g := range gates {
		g.Shut()
	}
	p.fire(pathAlerts()...)
	for _, g := range gates {
		g.open()
	}
	p.resolve()

	ready := `mesh_agent_clustermesh_remote_cluster_readiness_status{target_cluster="east",instance="` + far + `"}`
	for now, err := p.firing(); !now[flaps]; now, err = p.firing() {
		must(t, err)
		gates["east"].Shut()
		p.counts("1 - " + ready)
		gates["east"].open()
		p.counts(ready)
	}
	p.resolve()
}

// TestProcesses: agents that are down, and one that starts repeatedly.
func TestProcesses(t *testing.T) {
	t.Parallel()
	programtest.Find(t, "consumers", "prometheus")
	m := meshtest.Run(t, small("east", 1))
	apis := []string{programtest.Reserve(t), programtest.Reserve(t)}
	start := func(api string) (kill func()) {
		a := agenttest.StartAgent(t, m.Dir(), "--listen", api)
		return func() {
			must(t, syscall.Kill(a.PID(), syscall.SIGKILL))
			a.Stop()
		}
	}
	kill := []func(){start(apis[0]), start(apis[1])}
	p := startPrometheus(t, target{"mesh-agent", apis[0]}, target{"mesh-agent", apis[1]})
	p.scraped(2)
	kill[0]()
	kill[1]()
	p.fire("MeshAgentDown", "MeshAgentsDown", "MeshAgentAbsent")
	kill[0] = start(apis[0])
	start(apis[1])
	p.resolve()
	for now, err := p.firing(); !now[restarts]; now, err = p.firing() {
		must(t, err)
		kill[0]()
		kill[0] = start(apis[0])
		p.counts(`time() - 1 - process_start_time_seconds{instance="` + apis[0] + `"}`)
	}
	p.resolve()
}
