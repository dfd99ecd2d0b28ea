package kubernetes

import (
	"fmt"
	"testing"
	"time"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/internal/own/kubernetes"
)

func namespace(name string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %s, annotations: {clustermesh.cilium.io/global: "true"}}
`, name)
}

func service(name string, port int) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {namespace: default, name: %s, annotations: {service.cilium.io/global: "true"}}
spec: {selector: {app: %[1]s}, ports: [{name: http, port: %d, protocol: TCP}]}
`, name, port)
}

func slice(name, service, address string) string {
	return fmt.Sprintf(`
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: default, name: %s, labels: {kubernetes.io/service-name: %s}}
addressType: IPv4
endpoints: [{addresses: [%s], conditions: {ready: true}, targetRef: {kind: Pod, name: one}}]
ports: [{name: http, port: 80, protocol: TCP}]
`, name, service, address)
}

// node has a heartbeat, which its kubelet would renew.
func node(name, address, heartbeat string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Node
metadata: {name: %s}
spec: {podCIDR: 10.1.0.0/24, podCIDRs: [10.1.0.0/24]}
status:
  addresses: [{type: InternalIP, address: %s}]
  conditions: [{type: Ready, status: "True", lastHeartbeatTime: %q}]
`, name, address, heartbeat)
}

func pod(name, node, address string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {namespace: default, name: %s, labels: {app: %[1]s}}
spec:
  nodeName: %s
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: example.org/main, env: [{name: A, value: B}], ports: [{name: http, containerPort: 80}]}]
status: {phase: Running, hostIP: 192.168.0.1, podIP: %s, podIPs: [{ip: %[3]s}]}
`, name, node, address)
}

// definition defines a kind whose objects may have any field.
func definition(group, version, kind, plural, scope string) string {
	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %s.%s
  annotations: {api-approved.kubernetes.io: "unapproved, for a test"}
spec:
  group: %[2]s
  scope: %[3]s
  names: {kind: %[4]s, plural: %[1]s}
  versions:
  - name: %[5]s
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, plural, group, scope, kind, version)
}

func definitions() []string {
	return []string{
		definition("multicluster.x-k8s.io", "v1alpha1", "ServiceExport", "serviceexports", "Namespaced"),
		definition("cilium.io", "v2", "CiliumNode", "ciliumnodes", "Cluster"),
		definition("cilium.io", "v2", "CiliumEndpoint", "ciliumendpoints", "Namespaced"),
		definition("cilium.io", "v2", "CiliumIdentity", "ciliumidentities", "Cluster"),
		definition("cilium.io", "v2alpha1", "CiliumEndpointSlice", "ciliumendpointslices", "Cluster"),
	}
}

// customs are an object of each kind with a definition.
func customs() []string {
	return []string{`
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ServiceExport
metadata: {namespace: default, name: web}
`, `
apiVersion: cilium.io/v2
kind: CiliumNode
metadata: {name: node-1}
spec: {bootid: b1, addresses: [{type: InternalIP, ip: 192.168.0.1}], ipam: {podCIDRs: [10.1.0.0/24]}, encryption: {key: 3}}
`, `
apiVersion: cilium.io/v2
kind: CiliumEndpoint
metadata: {namespace: default, name: one}
status:
  identity: {id: 4711}
  networking: {addressing: [{ipv4: 10.1.0.1}], node: 192.168.0.1}
  named-ports: [{name: http, port: 80, protocol: TCP}]
`, `
apiVersion: cilium.io/v2
kind: CiliumIdentity
metadata: {name: "4711"}
security-labels: {"k8s:app": one}
`, `
apiVersion: cilium.io/v2alpha1
kind: CiliumEndpointSlice
metadata: {name: ces-1}
namespace: default
endpoints: [{name: two, id: 4712, networking: {addressing: [{ipv4: 10.1.0.2}], node: 192.168.0.1}, named-ports: [{name: http, port: 80, protocol: TCP}]}]
`}
}

// contents makes a few objects, and returns the revisions of the tables when they had all of them.
func (w *world) contents(t *testing.T) (before [3]statedb.Revision) {
	t.Helper()
	w.Apply(t, service("kept", 80), service("changed", 80), service("deleted", 80),
		node("node-1", "192.168.0.1", "2026-01-01T00:00:00Z"), pod("one", "node-1", "10.1.0.1"))
	w.follow(t, kubernetes.Options{})
	w.awaitListed(t)
	awaitNames(t, w, w.tables.Services, "default/changed", "default/deleted", "default/kept", "default/kubernetes")
	return w.revisions()
}

func (w *world) revisions() [3]statedb.Revision {
	return [3]statedb.Revision{revision(w.tables.Services), revision(w.tables.Nodes), revision(w.tables.Pods)}
}

func TestAKilledServerComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.contents(t)
	w.Kill(t)
	w.until(t, "the server is known to be away", w.away)
	current := w.tables.State().AsOf
	if current.IsZero() || current.After(time.Now()) {
		t.Errorf("services current at %v", current)
	}
	w.Restart(t)
	w.until(t, "all is well", func() bool { return w.well() && w.tables.State().AsOf.After(current) })
	if after := w.revisions(); after != before {
		t.Errorf("tables at %v, before at %v, although nothing changed", after, before)
	}
	w.Apply(t, service("new", 80))
	w.until(t, "the new service is there", func() bool { return get(w.tables.Services, "default/new") != nil })
}

func TestWhatChangedWhileWeWereCutOffFollows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.contents(t)
	kept := get(w.tables.Services, "default/kept")
	w.gate.Shut()
	w.until(t, "the server is known to be away", w.away)
	w.Apply(t, service("changed", 81), service("new", 80))
	w.Delete(t, service("deleted", 80))
	if after := w.revisions(); after != before {
		t.Errorf("tables at %v, before at %v, although nobody was heard", after, before)
	}
	w.open(t)
	awaitNames(t, w, w.tables.Services, "default/changed", "default/kept", "default/kubernetes", "default/new")
	w.until(t, "all is well", w.well)
	if port := get(w.tables.Services, "default/changed").Spec.Ports[0].Port; port != 81 {
		t.Errorf("port %d", port)
	}
	if get(w.tables.Services, "default/kept") != kept || w.revisions()[1] != before[1] || w.revisions()[2] != before[2] {
		t.Error("what did not change was written again")
	}
}

// TestASilentServerIsNoticed: the connections stay open, and no data arrive. Only pings, after a while, distinguish
// that from a cluster without changes.
func TestASilentServerIsNoticed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.contents(t)
	w.gate.Freeze()
	w.until(t, "the server is known to be away", w.away)
	w.Delete(t, service("deleted", 80))
	w.open(t)
	awaitNames(t, w, w.tables.Services, "default/changed", "default/kept", "default/kubernetes")
	if after := w.revisions(); after[1] != before[1] || after[2] != before[2] {
		t.Error("what did not change was written again")
	}
}

// TestTheDataOfABackupFollows: the API server returns with older data.
func TestTheDataOfABackupFollows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Apply(t, service("kept", 80), service("changed", 80))
	backup := w.Etcd.Backup(t)
	w.Apply(t, service("changed", 81), service("new", 80))
	w.follow(t, kubernetes.Options{})
	w.awaitListed(t)
	awaitNames(t, w, w.tables.Services, "default/changed", "default/kept", "default/kubernetes", "default/new")
	kept := get(w.tables.Services, "default/kept")
	w.Kill(t)
	w.Etcd.RestartFrom(t, backup)
	w.Restart(t)
	awaitNames(t, w, w.tables.Services, "default/changed", "default/kept", "default/kubernetes")
	if port := get(w.tables.Services, "default/changed").Spec.Ports[0].Port; port != 80 {
		t.Errorf("port %d", port)
	}
	if get(w.tables.Services, "default/kept") != kept {
		t.Error("what did not change was written again")
	}
}
