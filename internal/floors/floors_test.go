// Package floors holds the architecture as a test: which package may import
// which (docs/architecture.md).
package floors

import (
	"bufio"
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/mesh-agent/mesh-agent/"

// floors are the heights of the packages. Imports go strictly down; nothing
// imports its own floor.
func floors() map[string]int {
	return map[string]int{
		"pkg/codes":           0,
		"pkg/wire":            0,
		"pkg/kvstore":         1,
		"pkg/budget":          1,
		"pkg/store":           2,
		"pkg/store/syncstore": 2,
		"pkg/disconnect":      2,
		"pkg/claims":          2,
		"pkg/nodes":           3,
		"pkg/services":        3,
		"pkg/ipcache":         3,
		"pkg/allocator":       3,
		"pkg/remotecluster":   4,

		"pkg/kvstore/clientfile": 1,
		"pkg/kvstore/hint":       2,
		"pkg/kvstore/etcd":       3,
		"pkg/kvstore/memory":     3,

		"pkg/allocator/kvbackend":   4,
		"pkg/allocator/doublewrite": 4,
		"pkg/allocator/crdbackend":  4,
		"pkg/allocator/modes":       5,
		"pkg/identity":              4,
		"pkg/local":                 3,
		"pkg/local/manifests":       4,
		"pkg/local/kubernetes":      4,
		"pkg/publish":               5,
		"pkg/clustermesh":           5,
		"pkg/mirror":                6,
		"pkg/operate":               6,
		"pkg/register":              6,
		"pkg/findings":              6,
		"pkg/reasons":               6,
		"pkg/troubleshoot":          6,
		"pkg/view":                  7,
		"pkg/mesh":                  8,
		"pkg/api/transport":         7,
		"pkg/api":                   8,
		"pkg/api/client":            9, // speaks with pkg/api's types, from the other side
		"pkg/checks":                9,

		"internal/sim/contents": 1,
		"internal/sim":          2,
		"internal/sim/program":  3,
		"cmd/mesh-sim":          10,

		"internal/agent/config":     9,
		"internal/agent":            10,
		"internal/cli/run":          11,
		"internal/cli/command":      10,
		"internal/cli/explain":      11,
		"internal/cli/target":       11,
		"internal/cli/clustertext":  12,
		"internal/cli/configcheck":  12,
		"internal/cli/kvstore":      12,
		"internal/cli/identity":     12,
		"internal/cli/users":        12,
		"internal/cli/troubleshoot": 12,
		"internal/cli/resource":     13,
		"internal/cli/lookup":       14,
		"internal/cli/policy":       14,
		"internal/cli/get":          14,
		"internal/cli/describe":     15,
		"internal/cli/status":       14,
		"internal/cli/bugreport":    15,
		"internal/cli":              16,
		"cmd/mesh-agent":            17,
	}
}

// leaves may be imported from any floor and import none.
func leaves() map[string]bool {
	return map[string]bool{
		"internal/exit": true, "internal/version": true, "internal/logging": true, "internal/health": true, "internal/printer": true, "internal/notices": true, "internal/safetext": true,
		"internal/pki": true, "internal/tables": true, "internal/waiting": true, "internal/waiting/waittest": true, "internal/guard": true, "internal/dirwatch": true, "internal/children": true, "internal/etcdserver": true, "pkg/kvstore/etcdtest": true, "internal/kubetest": true, "internal/plainjson": true, "internal/selector": true, "internal/othermodule": true,
	}
}

// forTests are packages that use the others, and that tests and cmd/mesh-sim alone use.
func forTests() map[string]bool {
	return map[string]bool{"internal/agent/agenttest": true, "internal/cli/clitest": true, "internal/cli/samples": true, "internal/sim": true, "internal/sim/contents": true, "internal/sim/program": true, "internal/meshtest": true, "internal/meshtest/fakemesh": true, "internal/recorded": true, "internal/members": true, "internal/notices/collect": true, "internal/sbom": true, "test/members": true, "pkg/kvstore/kvtest": true, "pkg/operate/operatetest": true, "pkg/codes/codestest": true, "test/scale": true, "test/faults": true, "test/kubernetes": true, "internal/floors": true, "internal/citations": true, "internal/words": true, "deploy": true, "test/hostile": true}
}

// list returns, for each package of the project, what it imports outside tests.
func list(t *testing.T, args ...string) map[string][]string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-f", `{{.ImportPath}} {{join .Imports " "}}`}, args...)...)
	cmd.Dir = filepath.Join("..", "..")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v: %s", err, stderr.String())
	}
	imports := map[string][]string{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		f := strings.Fields(lines.Text())
		imports[strings.TrimPrefix(f[0], module)] = f[1:]
	}
	return imports
}

// owner is the package to whose internal directory a package belongs, or the package
// itself. What is internal has its owner's floor, and Go lets nobody else import it.
func owner(pkg string) string {
	of, _, _ := strings.Cut(pkg, "/internal/")
	return of
}

func TestImportsGoStrictlyDown(t *testing.T) {
	t.Parallel()
	floor, leaf, test := floors(), leaves(), forTests()
	for from, imports := range list(t, "./...") {
		height, placed := floor[owner(from)]
		if !placed && !leaf[from] && !test[from] {
			t.Errorf("%s has no floor: give it one here and in docs/architecture.md", from)
			continue
		}
		for _, imported := range imports {
			to, ours := strings.CutPrefix(imported, module)
			if !ours {
				continue
			}
			switch {
			case test[to] && from != "cmd/mesh-sim" && !test[from]:
				t.Errorf("%s imports %s, which is for tests", from, to)
			case owner(to) != to, test[from] && !placed, leaf[to]:
			case leaf[from]:
				t.Errorf("%s is a leaf and imports %s", from, to)
			case placed && floor[to] >= height:
				t.Errorf("%s (floor %d) imports %s (floor %d)", from, height, to, floor[to])
			}
		}
	}
}

// Only the simulator and tests run an etcd: the agent's binary stays without.
func TestTheAgentHasNoEtcdServer(t *testing.T) {
	t.Parallel()
	for dep := range list(t, "-deps", "./cmd/mesh-agent") {
		if strings.HasPrefix(dep, "go.etcd.io/etcd/server") || dep == "internal/etcdserver" || dep == "testing" {
			t.Errorf("mesh-agent depends on %s", dep)
		}
	}
}
