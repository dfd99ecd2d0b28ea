package publish

import "testing"

// While the source doubts what it has listed, that is published, and nothing is
// complete; then everything is that was there when the doubt ended.
func TestNothingIsCompleteWhileTheSourceDoubts(t *testing.T) {
	t.Parallel()
	n := &node{world: newWorld(t), to: newTarget()}
	n.cluster.Doubt()
	n.ids = newIdentities(n.to)
	stuck := make(chan struct{})
	n.ids.hold["stuck"] = stuck
	services, nodes, ids := newTarget(), newTarget(), newTarget()
	n.start(NewServices(n.cluster, cluster2(), true, ServiceTargets{Services: services}).Run)
	n.start(NewNodes(n.cluster, cluster2(), NodesParams{To: nodes, Log: discard()}).Run)
	n.start(NewIdentities(n.cluster, cluster2(), IdentitiesParams{DefaultGlobalNamespace: true, To: ids, Log: discard()}).Run)
	n.pods = NewPods(n.cluster, cluster2(), PodsParams{
		Node: "node1", DefaultGlobalNamespace: true, Allocate: n.ids.allocate, Release: n.ids.release, To: n.to, Log: discard(),
	})
	n.start(n.pods.Run)

	const web = "{metadata: {namespace: prod, name: web, annotations: {service.cilium.io/global: 'true'}}}"
	set(t, n.cluster.Services, web)
	set(t, n.cluster.Nodes, "metadata: {name: node1}")
	set(t, n.cluster.Pods, pod("a", "x", "10.0.0.1"))
	n.listed()
	services.untilNames(t, "prod/web")
	nodes.untilNames(t, "node1")
	n.untilPublished(t, "10.0.0.1 x a")
	set(t, n.cluster.Nodes, "metadata: {name: node2}")
	nodes.untilNames(t, "node1", "node2")
	set(t, n.cluster.Pods, pod("b", "stuck", "10.0.0.2"))
	for <-n.ids.asked != "stuck" {
	}
	for _, to := range []*target{services, nodes, n.to, ids} {
		if to.isComplete() {
			t.Error("complete in doubt")
		}
	}

	set(t, n.cluster.Nodes, "metadata: {name: node3}")
	n.cluster.Whole()
	n.cluster.Whole()
	for to, want := range map[*target]int{services: 1, nodes: 3, ids: 0} {
		to.until(t, "completeness", func(map[string]string) bool { return to.isComplete() })
		if len(to.complete) != want {
			t.Errorf("complete with %v, want %d", to.complete, want)
		}
	}
	if n.to.isComplete() {
		t.Error("complete before a pod of the start had its try")
	}
	close(stuck)
	n.to.until(t, "completeness", func(map[string]string) bool { return n.to.isComplete() })
	if len(n.to.complete) != 2 {
		t.Errorf("complete with %v", n.to.complete)
	}
}
