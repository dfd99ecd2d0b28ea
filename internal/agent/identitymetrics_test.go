package agent_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/agent/agenttest"
	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/exit"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcdtest"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// onNode is a node with a pod.
const onNode = `apiVersion: v1
kind: Node
metadata: {name: n1}
status: {addresses: [{type: InternalIP, address: 10.0.0.1}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web}}
spec: {nodeName: n1, containers: [{name: c, image: i}]}
status: {phase: Running, podIP: 10.9.0.1, podIPs: [{ip: 10.9.0.1}], hostIP: 10.0.0.1, hostIPs: [{ip: 10.0.0.1}]}
`

// TestMetricsOfIdentities: what the allocator of an agent and the garbage collection of an
// operator count is among their metrics.
func TestMetricsOfIdentities(t *testing.T) {
	t.Parallel()
	etcd, manifests := etcdtest.Start(t), t.TempDir()
	agenttest.Must(t, os.WriteFile(filepath.Join(manifests, "node.yaml"), []byte(onNode), 0o600))
	etcd.Put(t, wire.IdentityAllocation.Mappings()+"none", "k8s:app=x;", wire.IdentityAllocation.References()+"none", "131072")
	own := []string{"--cluster-name", "own", "--cluster-id", "2", "--kvstore-opt", "etcd.address=" + etcd.Endpoint(), "--local-manifests", manifests}
	agent := agenttest.StartAgent(t, t.TempDir(), append([]string{"--node-name", "n1"}, own...)...)
	operator := agenttest.StartMode(t, config.ModeOperate, nil, own...)
	wants := func(a *agenttest.Process, name string, want string) {
		t.Helper()
		a.Until(name+" "+want, func() bool { return series(t, a, name)[name] == want })
	}
	wants(agent, `mesh_agent_allocator_allocations_total{outcome="new"}`, "1")
	wants(agent, `mesh_agent_allocator_malformed_total{kind="mapping"}`, "1")
	wants(operator, `mesh_agent_allocator_malformed_total{kind="mapping"}`, "1")
	wants(operator, `mesh_agent_allocator_malformed_total{kind="reference"}`, "1")
	for _, a := range []*agenttest.Process{agent, operator} {
		if code := a.Stop(); code != exit.OK {
			t.Errorf("exit %d", code)
		}
	}
}
