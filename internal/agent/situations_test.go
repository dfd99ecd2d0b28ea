package agent_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/cli/status"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// These are situations about which operators of other meshes complain, and the behaviour here. Each test is named after
// its situation.

// TestAServerThatFreezesWhileTheConnectionStaysOpen: its data are stale within 45 seconds, with the timings of
// production, and status reports this.
func TestAServerThatFreezesWhileTheConnectionStaysOpen(t *testing.T) {
	waittest.Long(t)
	t.Parallel()
	m := meshtest.Run(t, meshtest.Clusters(2)...)
	a := agenttest.StartAgent(t, m.Dir())
	if out, errs, code := a.Call("status", "--wait", "--timeout", "10m"); code != exit.OK {
		t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	agenttest.Must(t, m.Clusters()[0].Freeze(0))
	a.Until("cluster1 to be stale", func() bool {
		c := status.ClusterNamed(a.Status().Clusters, "cluster1")
		return !slices.Contains([]string{c.Freshness.IPs.State, c.Freshness.Nodes.State, c.Freshness.Services.State, c.Freshness.Identities.State}, "synced")
	})
	out, _, code := a.Call("status")
	if code != exit.Unwell || !strings.Contains(out, string(codes.EtcdSilent)) && !strings.Contains(out, string(codes.ConnectionLost)) {
		t.Errorf("exit %d\n%s", code, out)
	}
	if c := status.ClusterNamed(a.Status().Clusters, "cluster2"); !c.Well() {
		t.Errorf("the other cluster is %s: %s", c.State, c.Message)
	}
	agenttest.Must(t, m.Clusters()[0].Thaw())
	a.Until("cluster1 to be well again", func() bool { _, _, code := a.Call("status"); return code == exit.OK })
}

// TestWaitRightAfterAFileWasDroppedIn: status --wait waits for the cluster of that file. However soon it is started, it
// never counts the mesh without the cluster as complete.
func TestWaitRightAfterAFileWasDroppedIn(t *testing.T) {
	waittest.Long(t)
	t.Parallel()
	m := meshtest.Run(t, meshtest.Clusters(3)...)
	files := make(map[string][]byte)
	dir := t.TempDir()
	for _, r := range m.Clusters() {
		c := r.Cluster()
		content, err := os.ReadFile(filepath.Join(m.Dir(), c.Name))
		agenttest.Must(t, err)
		files[c.Name] = content
	}
	a := agenttest.StartAgent(t, dir)
	for round := range 5 {
		for name, content := range files {
			agenttest.Must(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
			for _, goal := range []string{status.GoalReady, status.GoalSynced, status.GoalFresh} {
				out, errs, code := a.Call("status", "-o", "json", "--wait", "--for", goal, "--timeout", "10m")
				var st api.Status
				agenttest.Must(t, json.Unmarshal([]byte(out), &st))
				c := status.ClusterNamed(st.Clusters, name)
				if code != exit.OK || c == nil || !status.Reached(c, goal) {
					t.Fatalf("round %d, %s of %s: exit %d, %+v %s", round, goal, name, code, c, errs)
				}
			}
		}
		for name := range files {
			agenttest.Must(t, os.Remove(filepath.Join(dir, name)))
		}
		a.Until("all to be gone", func() bool { return len(a.Status().Clusters) == 0 })
	}
	// A cluster that can never be ready makes the wait time out.
	agenttest.Must(t, os.WriteFile(filepath.Join(dir, "nobody"), []byte("endpoints: [\"http://127.0.0.1:1\"]\n"), 0o600))
	if out, errs, code := a.Patiently(a.Call, "status", "--wait", "--timeout", "1s"); code != exit.Unwell || !strings.Contains(out+errs, "nobody") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}

// ownService is a service of the own cluster, with a ready endpoint.
const ownService = `apiVersion: v1
kind: Service
metadata:
  name: %[2]s
  namespace: %[1]s
  annotations: {%[3]s}
spec: {ports: [{name: http, port: 80, protocol: TCP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[2]s-1, namespace: %[1]s, labels: {kubernetes.io/service-name: %[2]s}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints: [{addresses: [10.250.0.1], conditions: {ready: true}}]
`

// TestWhyAServiceIsNotGlobal: another cluster does not export it, the own cluster does not have it, it is not
// annotated, its affinity is local; each with its code.
func TestWhyAServiceIsNotGlobal(t *testing.T) {
	t.Parallel()
	m, manifests := meshtest.Run(t, meshtest.Clusters(1)...), t.TempDir()
	a := agenttest.StartAgent(t, m.Dir(), "--cluster-name", "own", "--cluster-id", "9", "--local-manifests", manifests)
	var theirs []api.Service
	a.Until("their services", func() bool { theirs = agenttest.List[api.Service](a, "services"); return len(theirs) >= 3 })
	cases := []struct {
		namespace, name, annotations string
		code                         codes.Code
		text                         string
	}{
		{"shop", "mine", `service.cilium.io/global: "true"`, codes.NotExported, "not global: cluster cluster1 does not export it"},
		{theirs[0].Namespace, theirs[0].Name, "", codes.OwnNotGlobal, "not annotated as global"},
		{theirs[1].Namespace, theirs[1].Name, `service.cilium.io/global: "true", service.cilium.io/affinity: local`, codes.AffinityLocal, "the affinity is local"},
		{theirs[2].Namespace, theirs[2].Name, "none", codes.NoOwnService, "the own cluster own has no service of this name"},
	}
	for i, c := range cases {
		if c.annotations != "none" {
			text := fmt.Sprintf(ownService, c.namespace, c.name, c.annotations)
			agenttest.Must(t, os.WriteFile(filepath.Join(manifests, fmt.Sprintf("%d.yaml", i)), []byte(text), 0o600))
		}
	}
	for _, c := range cases {
		name := c.namespace + "/" + c.name
		var out string
		a.Until("the reason of "+name, func() bool {
			out, _, _ = a.Call("describe", "service", name)
			return strings.Contains(out, string(c.code))
		})
		if !strings.Contains(strings.Join(strings.Fields(out), " "), c.text) {
			t.Errorf("%s: %q is not in\n%s", name, c.text, out)
		}
		out, _, _ = a.Call("describe", "service", name, "-o", "json")
		var d struct{ Why api.Explanation }
		if err := json.Unmarshal([]byte(out), &d); err != nil || d.Why.Verdict.Code != c.code {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		if out, _, code := a.Call("explain", string(c.code)); code != exit.OK || !strings.Contains(out, "→") {
			t.Errorf("explain %s: exit %d\n%s", c.code, code, out)
		}
	}
}

// TestEveryFormOfOutputNamesTheClusterOfABackend: the cluster is shown next to the address of each backend.
func TestEveryFormOfOutputNamesTheClusterOfABackend(t *testing.T) {
	t.Parallel()
	m := meshtest.Run(t, meshtest.Clusters(2)...)
	a := agenttest.StartAgent(t, m.Dir())
	a.Until("both clusters", func() bool { return slices.Equal(a.ReadyClusters(), []string{"cluster1", "cluster2"}) })
	var s api.Service
	a.Until("a service with backends of both clusters", func() bool {
		for _, s = range agenttest.List[api.Service](a, "services") {
			clusters := make(map[string]bool)
			for _, b := range s.Backends {
				clusters[b.Cluster] = true
			}
			if len(clusters) == 2 {
				return true
			}
		}
		return false
	})
	name, b := s.Namespace+"/"+s.Name, s.Backends[0]
	for form, args := range map[string][]string{
		"a table":          {"get", "service", name, "-o", "wide"},
		"JSON":             {"get", "service", name, "-o", "json"},
		"YAML":             {"get", "service", name, "-o", "yaml"},
		"JSON of a list":   {"get", "services", "-n", s.Namespace, "-o", "json"},
		"a description":    {"describe", "service", name},
		"the same as JSON": {"describe", "service", name, "-o", "json"},
		"the same as YAML": {"describe", "service", name, "-o", "yaml"},
		"a lookup":         {"lookup", b.IP},
		"a lookup as JSON": {"lookup", b.IP, "-o", "json"},
	} {
		out, errs, code := a.Call(args...)
		if code != exit.OK || !strings.Contains(out, b.IP) {
			t.Errorf("%s: exit %d\n%s%s", form, code, out, errs)
		}
		if !beside(out, b.IP, b.Cluster) {
			t.Errorf("%s: %s is not beside %s:\n%s", form, b.Cluster, b.IP, out)
		}
	}
}

// beside reports whether a text stands within a few lines of an address.
func beside(out, address, text string) bool {
	lines := strings.Split(out, "\n")
	for i, line := range lines {
		if strings.Contains(line, address) && strings.Contains(strings.Join(lines[max(0, i-4):min(len(lines), i+5)], "\n"), text) {
			return true
		}
	}
	return false
}
