package kubernetes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mesh-agent/mesh-agent/internal/own/kubernetes"
)

func TestWhatIsThereAndWhatComesAndGoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	early := []string{service("early", 80), slice("early-1", "early", "10.1.0.1"), node("node-1", "192.168.0.1", "2026-01-01T00:00:00Z"), pod("one", "node-1", "10.1.0.1")}
	w.Apply(t, early...)
	w.follow(t, kubernetes.Options{})
	w.awaitListed(t)
	awaitNames(t, w, w.tables.Services, "default/early", "default/kubernetes")
	awaitNames(t, w, w.tables.Nodes, "node-1")
	awaitNames(t, w, w.tables.Pods, "default/one")
	if get(w.tables.EndpointSlices, "default/early-1") == nil {
		t.Errorf("slices: %v", names(w.tables.EndpointSlices))
	}

	late := []string{namespace("late"), service("late", 81), slice("late-1", "late", "10.1.0.2"), node("node-2", "192.168.0.2", "2026-01-01T00:00:00Z"), pod("two", "node-2", "10.1.0.2")}
	w.Apply(t, late...)
	awaitNames(t, w, w.tables.Services, "default/early", "default/kubernetes", "default/late")
	awaitNames(t, w, w.tables.Nodes, "node-1", "node-2")
	w.until(t, "the late ones are there", func() bool {
		p := get(w.tables.Pods, "default/two")
		return p != nil && p.Status.PodIP == "10.1.0.2" && get(w.tables.Namespaces, "late") != nil && get(w.tables.EndpointSlices, "default/late-1") != nil
	})
	w.checkContents(t)

	w.Apply(t, service("late", 82))
	w.until(t, "the service has another port", func() bool { return get(w.tables.Services, "default/late").Spec.Ports[0].Port == 82 })

	w.Delete(t, append(late, early...)...)
	awaitNames(t, w, w.tables.Services, "default/kubernetes")
	awaitNames(t, w, w.tables.Nodes)
	awaitNames(t, w, w.tables.Pods)
	w.until(t, "the rest is gone", func() bool {
		return get(w.tables.Namespaces, "late") == nil && get(w.tables.EndpointSlices, "default/early-1") == nil && get(w.tables.EndpointSlices, "default/late-1") == nil
	})
}

// checkContents checks the fields of objects that are kept.
func (w *world) checkContents(t *testing.T) {
	t.Helper()
	if s := get(w.tables.Services, "default/late"); s.Annotations["service.cilium.io/global"] != "true" || s.Spec.ClusterIP == "" || s.Spec.Selector["app"] != "late" {
		t.Errorf("service: %+v", s)
	}
	if s := get(w.tables.EndpointSlices, "default/late-1"); s.Labels["kubernetes.io/service-name"] != "late" || s.Endpoints[0].Addresses[0] != "10.1.0.2" || !*s.Endpoints[0].Conditions.Ready || *s.Ports[0].Port != 80 {
		t.Errorf("slice: %+v", s)
	}
	if n := get(w.tables.Nodes, "node-2"); n.Status.Addresses[0].Address != "192.168.0.2" || n.Spec.PodCIDRs[0] != "10.1.0.0/24" || n.Status.Conditions != nil {
		t.Errorf("node: %+v", n)
	}
	p := get(w.tables.Pods, "default/two")
	if p.Labels["app"] != "two" || p.Spec.NodeName != "node-2" || p.Status.Phase != corev1.PodRunning || p.Spec.Containers[0].Ports[0].Name != "http" || p.CreationTimestamp.IsZero() {
		t.Errorf("pod: %+v", p)
	}
	if p.ManagedFields != nil || p.ResourceVersion != "" || p.Spec.Containers[0].Env != nil {
		t.Errorf("kept although nobody reads it: %+v", p)
	}
	if n := get(w.tables.Namespaces, "late"); n.Annotations["clustermesh.cilium.io/global"] != "true" {
		t.Errorf("namespace: %+v", n)
	}
}

func TestAHeartbeatIsNoChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Apply(t, node("node-1", "192.168.0.1", "2026-01-01T00:00:00Z"))
	w.follow(t, kubernetes.Options{})
	w.awaitListed(t)
	before := get(w.tables.Nodes, "node-1")
	w.Apply(t, node("node-1", "192.168.0.1", "2026-01-01T00:05:00Z"), node("node-2", "192.168.0.2", "2026-01-01T00:00:00Z"))
	awaitNames(t, w, w.tables.Nodes, "node-1", "node-2") // the heartbeat was written before this
	if get(w.tables.Nodes, "node-1") != before {
		t.Error("the heartbeat changed the node")
	}
	w.Apply(t, node("node-1", "192.168.0.9", "2026-01-01T00:05:00Z"))
	w.until(t, "the node has another address", func() bool { return get(w.tables.Nodes, "node-1").Status.Addresses[0].Address == "192.168.0.9" })
}

func TestOnlyOurOwnPods(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Apply(t, pod("ours", "node-1", "10.1.0.1"), pod("theirs", "node-2", "10.1.0.2"))
	w.follow(t, kubernetes.Options{NodeName: "node-1", OwnPodsOnly: true})
	w.awaitListed(t)
	awaitNames(t, w, w.tables.Pods, "default/ours")
	w.Apply(t, pod("theirs-too", "node-2", "10.1.0.3"), pod("ours-too", "node-1", "10.1.0.4"))
	awaitNames(t, w, w.tables.Pods, "default/ours", "default/ours-too")
}

// TestTheRoleSuffices: with the account and only the role of the manifests, every kind is read.
func TestTheRoleSuffices(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Apply(t, definitions()...)
	w.Apply(t, customs()...)
	w.Apply(t, service("web", 80))
	account, role := manifest(t, "mesh-agent.yaml")[0], manifest(t, "kubernetes.yaml")
	w.Apply(t, account)
	token := w.Token(t, "kube-system", "mesh-agent")

	w.follow(t, kubernetes.Options{Kubeconfig: w.Kubeconfig(t, w.gate.Addr(), token)})
	w.until(t, "the kinds are refused", func() bool { return strings.Contains(w.wrong(), "forbidden") })
	if n := w.tables.Counts(); len(n) > 0 || w.tables.State().Listed {
		t.Errorf("without a right there are %v", n)
	}
	w.Apply(t, role...)
	w.awaitListed(t)
	w.until(t, "nothing is refused", w.well)
	awaitNames(t, w, w.tables.Services, "default/kubernetes", "default/web")
	awaitNames(t, w, w.tables.ServiceExports, "default/web")
	awaitNames(t, w, w.tables.CiliumNodes, "node-1")
	awaitNames(t, w, w.tables.CiliumEndpoints, "default/one")
	awaitNames(t, w, w.tables.CiliumIdentities, "4711")
}

// TestTheRoleOfAnOperatorSuffices: with it, the operator reads all objects that it publishes.
func TestTheRoleOfAnOperatorSuffices(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Apply(t, definitions()...)
	w.Apply(t, customs()...)
	w.Apply(t, service("web", 80))
	w.Apply(t, manifest(t, "operate.yaml")[:3]...) // account, role and binding
	token := w.Token(t, "kube-system", "mesh-agent-operate")
	w.follow(t, kubernetes.Options{Kubeconfig: w.Kubeconfig(t, w.gate.Addr(), token), ServicesOnly: true, CiliumToo: true})
	w.awaitListed(t)
	w.until(t, "nothing is refused", w.well)
	awaitNames(t, w, w.tables.Services, "default/kubernetes", "default/web")
	awaitNames(t, w, w.tables.ServiceExports, "default/web")
	awaitNames(t, w, w.tables.CiliumIdentities, "4711")
	awaitNames(t, w, w.tables.CiliumNodes, "node-1")
	awaitNames(t, w, w.tables.CiliumEndpoints, "default/one")
	if listed, _ := w.tables.Pods.Table().Initialized(w.tables.ReadTxn()); listed {
		t.Error("it reads pods")
	}
}

// manifest returns the documents of a file of deploy/.
func manifest(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n---\n")
}
