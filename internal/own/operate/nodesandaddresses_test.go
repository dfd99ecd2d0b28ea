package operate

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/codestest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

const (
	nodesOfEast = "cilium/state/nodes/v1/east/"
	addresses   = "cilium/state/ip/v1/default/"
)

// object reads an object of the description.
func object[T any](t *testing.T, text string, args ...any) *T {
	t.Helper()
	o := new(T)
	must(t, json.Unmarshal([]byte(fmt.Sprintf(text, args...)), o))
	return o
}

// ciliumNode adds a node.
func (w *world) ciliumNode(name, ip, network string) *local.CiliumNode {
	w.t.Helper()
	o := object[local.CiliumNode](w.t, `{"metadata": {"name": %q}, "spec": {"addresses": [{"type": "InternalIP", "ip": %q}], "ipam": {"podCIDRs": [%q]}}}`, name, ip, network)
	w.source.CiliumNodes.Apply([]store.Change[local.CiliumNode]{{New: o}})
	return o
}

// endpoint adds the endpoint of a pod.
func (w *world) endpoint(name string, created int, id int, ip string) *local.CiliumEndpoint {
	w.t.Helper()
	o := object[local.CiliumEndpoint](w.t, `{"metadata": {"namespace": "ns", "name": %q, "uid": %[1]q, "creationTimestamp": "2026-01-01T00:00:%02dZ"},
		"status": {"id": 7, "identity": {"id": %d}, "networking": {"addressing": [{"ipv4": %q}], "node": "192.168.0.1"}}}`, name, created, id, ip)
	w.source.CiliumEndpoints.Apply([]store.Change[local.CiliumEndpoint]{{New: o}})
	return o
}

// tasks is what an operator reports of its tasks.
type tasks struct {
	mu  sync.Mutex
	now map[string]string
}

func (r *tasks) report(task string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now[task] = ""
	if err != nil {
		r.now[task] = err.Error()
	}
}

// says reports whether the last report of a task has this text in it; empty: no error.
func (r *tasks) says(task, part string) func() bool {
	return func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		now, is := r.now[task]
		return is && strings.Contains(now, part) && (now == "") == (part == "")
	}
}

// TestNodesAndAddressesOfAClusterWhoseAgentsDoNotWrite: they are published with leases and canaries, follow their
// objects, and entries without an object are withdrawn, also when their writer has ended. A problem of an object is
// reported with its name, and does not affect other objects.
func TestNodesAndAddressesOfAClusterWhoseAgentsDoNotWrite(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t), &tasks{now: make(map[string]string)}
	const id = 196701
	w.ciliumNode("n1", "192.168.0.1", "10.1.0.0/24")
	gone := w.ciliumNode("n2", "192.168.0.2", "10.2.0.0/24")
	bad := w.ciliumNode("broken", "192.168.0.3", "10.3.0.0/240")
	w.source.Nodes.Apply([]store.Change[corev1.Node]{{New: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "without-cilium"}}}})
	first := w.endpoint("first", 1, id, "10.1.0.1")
	w.endpoint("second", 2, id+1, "10.1.0.1") // waits for the address
	w.endpoint("other", 3, id, "10.1.0.3")
	w.endpoint("foreign", 4, 70000, "10.1.0.4")
	w.endpoint("nonsense", 5, id, "10.1.0")
	w.identity(fmt.Sprint(id), "a")
	w.listed()
	c := w.etcd.Client(t)
	stray := addresses + "10.9.9.9"
	_, err := c.Put(t.Context(), stray, "{}") // of one who is gone
	must(t, err)
	with := func(p *Params) { p.NodesAndAddresses, p.Report = true, r.report }
	o := w.operator(with)
	waittest.Until(t, "readiness", o.isPublished)
	expect := wire.Expect{Cluster: "east", ClusterID: 3, Layout: o.Identities.Layout}
	has := func(want ...string) func() bool {
		return func() bool {
			n := 0
			for key, e := range w.contents() {
				if strings.HasPrefix(key, nodesOfEast) || strings.HasPrefix(key, addresses) {
					if n++; e.lease == 0 {
						return false
					}
				}
			}
			for _, key := range want {
				if w.value(key) == "" {
					return false
				}
			}
			return n == len(want)
		}
	}
	waittest.Until(t, "what is right", has(nodesOfEast+"broken", nodesOfEast+"n1", nodesOfEast+"n2", addresses+"10.1.0.1", addresses+"10.1.0.3"))
	for _, canary := range []string{"nodes/v1", "ip/v1", "identities/v1", "services/v1"} {
		waittest.Until(t, canary, func() bool { return w.value("cilium/synced/east/cilium/state/"+canary) != "" })
	}
	if config, err := wire.DecodeClusterConfig([]byte(w.value("cilium/cluster-config/east"))); err != nil || !config.Capabilities.SyncedCanaries {
		t.Errorf("%+v, %v", config, err)
	}
	if n, err := wire.DecodeNode("n1", []byte(w.value(nodesOfEast+"n1")), expect); err != nil || n.IPAddresses[0].IP.String() != "192.168.0.1" {
		t.Errorf("%+v, %v", n, err)
	}
	if ip, err := wire.DecodeIP("10.1.0.1", []byte(w.value(addresses+"10.1.0.1")), expect); err != nil || ip.Identity != id || ip.Pod != "first" {
		t.Errorf("%+v, %v", ip, err)
	}
	waittest.Until(t, "the node that is wrong", r.says("nodes", "broken"))
	waittest.Until(t, "its code", r.says("nodes", string(codes.NodeRefused)))
	waittest.Until(t, "the code of addresses", r.says("addresses", string(codes.AddressesRefused)))
	waittest.Until(t, "the endpoints that are wrong", r.says("addresses", "ns/foreign: the identity 70000"))
	waittest.Until(t, "both", r.says("addresses", "and 1 more"))

	w.source.CiliumEndpoints.Apply([]store.Change[local.CiliumEndpoint]{{Old: first}})
	waittest.Until(t, "the next owner", func() bool { return strings.Contains(w.value(addresses+"10.1.0.1"), `"K8sPodName":"second"`) })
	w.source.CiliumNodes.Apply([]store.Change[local.CiliumNode]{{Old: gone}, {Old: bad}})
	waittest.Until(t, "a node that is gone", has(nodesOfEast+"n1", addresses+"10.1.0.1", addresses+"10.1.0.3"))
	waittest.Until(t, "nothing is wrong with nodes", r.says("nodes", ""))
	w.source.Namespaces.Apply([]store.Change[corev1.Namespace]{{New: &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "ns", Annotations: map[string]string{"clustermesh.cilium.io/global": "false"}},
	}}})
	waittest.Until(t, "a namespace that is withheld", has(nodesOfEast+"n1"))
	_, err = c.Delete(t.Context(), nodesOfEast+"n1")
	must(t, err)
	waittest.Until(t, "what is deleted comes back", has(nodesOfEast+"n1"))

	o.stop()
	w.source.CiliumNodes.Apply([]store.Change[local.CiliumNode]{{Old: w.ciliumNode("n1", "192.168.0.1", "10.1.0.0/24")}})
	w.ciliumNode("n3", "192.168.0.3", "10.3.0.0/24")
	w.operator(with)
	waittest.Until(t, "the next leader", has(nodesOfEast+"n3"))
}

// TestNodesAndAddressesAreLeftToAgents that write them: they refer to identities.
func TestNodesAndAddressesAreLeftToAgents(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t), &tasks{now: make(map[string]string)}
	w.ciliumNode("n1", "192.168.0.1", "10.1.0.0/24")
	w.listed()
	c := w.etcd.Client(t)
	for _, key := range []string{addresses + "10.9.9.9", wire.IdentityAllocation.Reference("k8s:a=1;", "192.168.0.1")} {
		_, err := c.Put(t.Context(), key, "196701")
		must(t, err)
	}
	w.operator(func(p *Params) { p.NodesAndAddresses, p.Report = true, r.report })
	waittest.Until(t, "it to be reported", r.says("nodes and addresses", "192.168.0.1"))
	waittest.Until(t, "its code", r.says("nodes and addresses", string(codes.AgentsWriteToo)))
	waittest.Until(t, "a service", func() bool { return w.value("cilium/cluster-config/east") != "" })
	if w.value(addresses+"10.9.9.9") == "" || w.value(nodesOfEast+"n1") != "" {
		t.Errorf("there is %v", w.contents())
	}
}

// TestEveryFindingOfAnOperatorIsReached by the tests here: they wait for its code.
func TestEveryFindingOfAnOperatorIsReached(t *testing.T) {
	t.Parallel()
	codestest.Reached(t, codes.Operate, codes.NodeRefused, codes.AddressesRefused, codes.AgentsWriteToo, codes.NumberGivenAway)
}
