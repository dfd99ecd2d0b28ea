package agent_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/agent/agenttest"
	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/meshtest"
	"github.com/mesh-agent/mesh-agent/internal/sim/contents"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcdtest"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// TestAMirrorKeepsToTheClaimPolicy as an agent does: a cluster with another ID than the
// policy file gives it is not copied, until the file says otherwise. Which cluster had
// which ID is remembered over a restart.
func TestAMirrorKeepsToTheClaimPolicy(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.Start(t)
	mesh, state, policy := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "policy.yaml")
	client := func(name, content string) {
		agenttest.Must(t, os.WriteFile(filepath.Join(mesh, name), []byte(content), 0o600))
	}
	of := func(name string) string {
		t.Helper()
		content, err := os.ReadFile(filepath.Join(meshtest.Run(t, contents.Default(name, 3)).Dir(), name))
		agenttest.Must(t, err)
		return string(content)
	}
	pin := func(content string) { agenttest.Must(t, os.WriteFile(policy, []byte(content), 0o600)) }
	start := func() *agenttest.Process {
		return agenttest.StartMode(t, config.ModeMirror, nil, "--clustermesh-config", mesh, "--cluster-name", "own", "--cluster-id", "9",
			"--kvstore-opt", "etcd.address="+etcd.Endpoint(), "--claim-policy-file", policy, "--state-dir", state)
	}
	shows := func(a *agenttest.Process, name string, want codes.Code) {
		t.Helper()
		a.Until(name+" to show "+string(want), func() bool {
			for _, c := range a.Status().Clusters {
				if c.Name == name {
					return want == "" && c.Well() || want != "" && c.Code == string(want)
				}
			}
			return false
		})
	}
	copied := func(name string) bool {
		resp, err := etcd.Client(t).Get(t.Context(), wire.ClusterConfigKey(name))
		agenttest.Must(t, err)
		return len(resp.Kvs) > 0
	}

	client("paris", of("paris"))
	pin("clusters: {paris: {id: 7}}")
	a := start()
	shows(a, "paris", codes.ClusterIDNotPinned)
	if copied("paris") {
		t.Error("a configuration with another ID than the pinned one is copied")
	}
	pin("clusters: {paris: {id: 3}}")
	shows(a, "paris", "")
	a.Stop()

	pin("default: allow")
	client("paris", "endpoints:\n- http://127.0.0.1:1\n") // it is away
	client("evil", of("evil"))
	b := start()
	shows(b, "evil", codes.ClusterIDRemembered)
	if copied("evil") {
		t.Error("a cluster with the ID of one that is away is copied")
	}
}
