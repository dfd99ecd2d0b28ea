package consumers

import (
	"fmt"
	"net"
	"strconv"
	"syscall"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
	"github.com/mesh-agent/mesh-agent/simtest/doctest"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest"
	"github.com/mesh-agent/mesh-agent/simtest/programtest"
	"github.com/mesh-agent/mesh-agent/simtest/sim"
	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
)

func TestMain(m *testing.M) { agenttest.Main(m) }

var must = agenttest.Must

// world is three simulated clusters, and an agent that keeps its addresses over a restart.
type world struct {
	t        *testing.T
	mesh     *sim.Mesh
	agent    *agenttest.Process
	flags    []string
	dns, api string
	port     uint16 // of all backends; no other process uses it
	servers  map[string]*server
}

// names are the clusters, in the order of their IDs.
func names() []string { return []string{"east", "west", "north"} }

// newWorld starts the clusters, without an agent.
func newWorld(t *testing.T, flags ...string) *world {
	t.Helper()
	var all []contents.Cluster
	for i, name := range names() {
		c := contents.Default(name, uint32(i+1))
		c.Nodes, c.Services, c.Backends, c.Identities, c.Addresses = 0, 0, 0, 4, 0
		all = append(all, c)
	}
	w := &world{t: t, mesh: meshtest.Run(t, all...), dns: programtest.Reserve(t), api: programtest.Reserve(t), servers: make(map[string]*server)}
	_, port, err := net.SplitHostPort(programtest.Reserve(t))
	must(t, err)
	number, err := strconv.ParseUint(port, 10, 16)
	must(t, err)
	w.port = uint16(number)
	w.flags = append([]string{"--cluster-name", "home", "--cluster-id", "9", "--listen", w.api, "--dns", w.dns}, flags...)
	return w
}

// start starts the agent, and waits until it has read every cluster.
func (w *world) start() {
	w.t.Helper()
	w.startUnready()
	if out, errs, code := w.agent.Call("status", "--wait", "--timeout", "10m"); code != exit.OK {
		w.t.Fatalf("status --wait: exit %d\n%s%s", code, out, errs)
	}
}

// startUnready starts the agent.
func (w *world) startUnready() {
	w.t.Helper()
	w.agent = agenttest.StartAgent(w.t, w.mesh.Dir(), w.flags...)
}

// kill ends the agent as kill -9 does.
func (w *world) kill() {
	w.t.Helper()
	must(w.t, syscall.Kill(w.agent.PID(), syscall.SIGKILL))
	w.agent.Stop()
}

func (w *world) cluster(name string) *sim.Running {
	w.t.Helper()
	r, err := w.mesh.Cluster(name)
	must(w.t, err)
	return r
}

// killClusters ends all etcd servers as kill -9 does.
func (w *world) killClusters() {
	w.t.Helper()
	for _, name := range names() {
		must(w.t, w.cluster(name).Kill())
	}
}

func (w *world) startClusters() {
	w.t.Helper()
	for _, name := range names() {
		must(w.t, w.cluster(name).Start(w.t.Context()))
	}
}

// publish lets a cluster share a service of the namespace shop whose backends have the ports "http" and
// "metrics", with one number.
// Without backends it shares none.
func (w *world) publish(cluster, service string, ips ...string) {
	w.t.Helper()
	r := w.cluster(cluster)
	s := wire.Service{
		Cluster: cluster, ClusterID: r.Cluster().ID, Namespace: "shop", Name: service, Shared: true,
		Frontends: map[string]wire.Ports{"198.18.0.1": {"http": {Protocol: "TCP", Port: 80}}}, Backends: map[string]wire.Ports{},
		Labels: map[string]string{"app": service, "monitored": "true"}, Selector: map[string]string{"app": service},
	}
	for _, ip := range ips {
		s.Backends[ip] = wire.Ports{"http": {Protocol: "TCP", Port: w.port}, "metrics": {Protocol: "TCP", Port: w.port}}
	}
	must(w.t, r.Put(w.t.Context(), s.Key(), s.Encode()))
}

// node lets a cluster have a node.
func (w *world) node(cluster, name, ip string) {
	w.t.Helper()
	r := w.cluster(cluster)
	n := wire.Node{
		Name: name, Cluster: cluster, ClusterID: r.Cluster().ID, Source: wire.SourceCustomResource.String(),
		IPAddresses: []wire.NodeAddress{{Type: wire.AddressInternalIP, IP: net.ParseIP(ip)}}, Labels: map[string]string{"topology.kubernetes.io/zone": "a"},
	}
	must(w.t, r.Put(w.t.Context(), n.Key(), n.Encode()))
}

// address is the address of a server: the second number is the cluster's ID.
func address(cluster, of, n int) string { return fmt.Sprintf("127.%d.%d.%d", cluster, of, n) }

// until waits for a condition.
func (w *world) until(what string, ok func() bool) {
	w.t.Helper()
	w.agent.Until(what, ok)
}

// document is an indented block of a file of the documents, from the line that begins with first, with some words
// replaced.
func document(t *testing.T, file, first string, replace ...string) string {
	t.Helper()
	return doctest.Block(t, "../../docs/"+file, first, replace...)
}
