package kubernetes

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/own/kubernetes"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// withCilium are the objects that Cilium makes for a pod: its endpoint and its identity.
func withCilium(name, ip string, id int) []string {
	return []string{fmt.Sprintf(`
apiVersion: cilium.io/v2
kind: CiliumEndpoint
metadata: {namespace: default, name: %s}
status:
  identity: {id: %d}
  networking: {addressing: [{ipv4: %s}], node: 192.168.0.1}
`, name, id, ip), fmt.Sprintf(`
apiVersion: cilium.io/v2
kind: CiliumIdentity
metadata: {name: "%d"}
security-labels: {"k8s:app": %s, "k8s:io.cilium.k8s.policy.cluster": east, "k8s:io.kubernetes.pod.namespace": default}
`, id, name)}
}

// TestAnotherClusterSeesTheNodesAndAddresses of a cluster whose agents do not write to its kvstore: operate takes them
// from Kubernetes objects, one pod's from a slice, and an agent of another cluster shows them. Deletions are seen too.
func TestAnotherClusterSeesTheNodesAndAddresses(t *testing.T) {
	t.Parallel()
	p := newPublishing(t)
	p.Apply(t, definitions()...)
	const node1 = `
apiVersion: cilium.io/v2
kind: CiliumNode
metadata: {name: node-1}
spec: {addresses: [{type: InternalIP, ip: 192.168.0.1}], ipam: {podCIDRs: [10.1.0.0/24]}}
`
	p.Apply(t, node1)
	p.Apply(t, withCilium("one", "10.1.0.1", 196701)...)
	two := withCilium("two", "10.1.0.2", 196702)[1:]
	two = append(two, `
apiVersion: cilium.io/v2alpha1
kind: CiliumEndpointSlice
metadata: {name: ces-1}
namespace: default
endpoints: [{name: two, id: 196702, networking: {addressing: [{ipv4: 10.1.0.2}], node: 192.168.0.1}}]
`)
	p.Apply(t, two...)
	p.Apply(t, withCilium("foreign", "10.1.0.3", 4711)[:1]...)
	p.start(t, "operate", "--publish-nodes-and-addresses")

	mesh, socket := t.TempDir(), filepath.Join(t.TempDir(), "west.sock")
	waittest.Must(t, os.WriteFile(filepath.Join(mesh, "east"), []byte("endpoints: ["+p.etcd.Endpoint()+"]\n"), 0o600))
	west := exec.Command(p.program, "run", "--cluster-name", "west", "--cluster-id", "1", "--clustermesh-config", mesh,
		"--listen", "127.0.0.1:0", "--socket", socket)
	west.Stdout, west.Stderr = t.Output(), t.Output()
	waittest.Must(t, west.Start())
	t.Cleanup(func() {
		_ = west.Process.Signal(syscall.SIGTERM)
		_ = west.Wait() // checked elsewhere
	})
	shows := func(args ...string) string {
		out, _ := exec.Command(p.program, append(args, "--socket", socket)...).Output() // the agent may not listen yet
		return string(bytes.TrimSpace(out))
	}
	p.until(t, "the node", func() bool { return strings.Contains(shows("get", "nodes", "-o", "name"), "east/node-1") })
	p.until(t, "the addresses", func() bool {
		return strings.Contains(shows("lookup", "10.1.0.1"), "k8s:app=one") && strings.Contains(shows("lookup", "10.1.0.2"), "k8s:app=two")
	})
	p.until(t, "all of the cluster", func() bool {
		return exec.Command(p.program, "status", "--socket", socket).Run() == nil
	})
	if out := shows("get", "ips"); strings.Contains(out, "10.1.0.3") {
		t.Errorf("an identity of another cluster is shown:\n%s", out)
	}
	operator := filepath.Join(p.dir, "operate.sock")
	out, _ := exec.Command(p.program, "get", "health", "-o", "wide", "--socket", operator).CombinedOutput()
	if !strings.Contains(string(out), "default/foreign: the identity 4711") {
		t.Errorf("nothing is said of the endpoint that is refused:\n%s", out)
	}
	p.Delete(t, two...)
	p.until(t, "an address goes", func() bool { return !strings.Contains(shows("get", "ips"), "10.1.0.2/32") })
	p.Delete(t, node1)
	p.until(t, "the node goes", func() bool { return !strings.Contains(shows("get", "nodes", "-o", "name"), "node-1") })
	if out := shows("lookup", "10.1.0.1"); !strings.Contains(out, "k8s:app=one") {
		t.Errorf("what stays is %s", out)
	}
}

func TestKindsAreTakenUpWhenTheyAreDefined(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.follow(t, kubernetes.Options{LookAgain: 500 * time.Millisecond, LookTwice: 500 * time.Millisecond})
	w.awaitListed(t)
	if !w.well() {
		t.Errorf("kinds without a definition are wrong: %s", w.wrong())
	}

	w.Apply(t, definitions()...)
	w.Apply(t, customs()...)
	awaitNames(t, w, w.tables.ServiceExports, "default/web")
	awaitNames(t, w, w.tables.CiliumNodes, "node-1")
	awaitNames(t, w, w.tables.CiliumEndpoints, "default/one")
	awaitNames(t, w, w.tables.CiliumIdentities, "4711")
	awaitNames(t, w, w.tables.CiliumEndpointSlices, "ces-1")
	if e, found := w.tables.Endpoint(w.tables.ReadTxn(), "default/two"); !found || e.Status.Identity.ID != 4712 || e.Status.Networking.Addressing[0].IPv4 != "10.1.0.2" || e.Status.NamedPorts[0].Port != 80 {
		t.Errorf("member of a slice: %+v", e)
	}
	if n := get(w.tables.CiliumNodes, "node-1").Spec; n.BootID != "b1" || n.Addresses[0].IP != "192.168.0.1" || n.IPAM.PodCIDRs[0] != "10.1.0.0/24" || n.Encryption.Key != 3 {
		t.Errorf("node: %+v", n)
	}
	if e := get(w.tables.CiliumEndpoints, "default/one").Status; e.Identity.ID != 4711 || e.Networking.Addressing[0].IPv4 != "10.1.0.1" || e.Networking.NodeIP != "192.168.0.1" || e.NamedPorts[0].Port != 80 {
		t.Errorf("endpoint: %+v", e)
	}
	if i := get(w.tables.CiliumIdentities, "4711"); i.SecurityLabels["k8s:app"] != "one" {
		t.Errorf("identity: %+v", i)
	}

	w.Delete(t, customs()[1])
	awaitNames(t, w, w.tables.CiliumNodes)
	w.Delete(t, definitions()[2])
	awaitNames(t, w, w.tables.CiliumEndpoints)
}
