// Package layers checks the rules of docs/architecture.md as a test: which package may import which.
package layers

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/mesh-agent/mesh-agent/"

// layers are the folders of the table of packages in docs/architecture.md, from the top to the bottom.
func layers(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| layer |")
	table, _, _ = strings.Cut(table, "\n\n")
	var all []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]*)` \\|").FindAllStringSubmatch(table, -1) {
		all = append(all, row[1])
	}
	return all
}

// within reports whether a package is in a folder, or is the folder's own.
func within(pkg, folder string) bool { return pkg == folder || strings.HasPrefix(pkg, folder+"/") }

// outside reports whether a package is in a folder outside of the agent: these import any package, and no layer imports
// them.
func outside(pkg string) bool {
	return slices.ContainsFunc([]string{"simtest", "tools", "test", "deploy", "cmd/mesh-sim", "pkg/kvstore/kvtest"}, func(folder string) bool { return within(pkg, folder) })
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

func TestImportsGoDown(t *testing.T) {
	t.Parallel()
	all := layers(t)
	if len(all) < 2 {
		t.Fatalf("docs/architecture.md has these layers: %q", all)
	}
	// layer is the place of a package in the table; for nested folders, that of the inner one.
	layer := func(pkg string) int {
		at := -1
		for i, folder := range all {
			if within(pkg, folder) && (at < 0 || len(folder) > len(all[at])) {
				at = i
			}
		}
		return at
	}
	used := make([]bool, len(all))
	for from, imported := range list(t, "./...") {
		if outside(from) {
			continue
		}
		if layer(from) < 0 {
			t.Errorf("%s is in no layer: move it into one (docs/architecture.md)", from)
			continue
		}
		used[layer(from)] = true
		for _, to := range imported {
			switch to, ours := strings.CutPrefix(to, module); {
			case !ours:
			case outside(to):
				t.Errorf("%s imports %s, which is no part of the agent", from, to)
			case layer(to) < layer(from):
				t.Errorf("%s imports %s, which is in a layer above it", from, to)
			}
		}
	}
	for i, folder := range all {
		if !used[i] {
			t.Errorf("docs/architecture.md has the layer %s, which has no package", folder)
		}
	}
}

// TestTheContractIsApart: a program that talks to an agent over HTTP links the protocol and the findings, and no library of etcd, gRPC,
// Kubernetes or statedb.
func TestTheContractIsApart(t *testing.T) {
	t.Parallel()
	deps := list(t, "-deps", "./pkg/api/client")
	for dep := range deps {
		for _, heavy := range []string{"go.etcd.io/", "google.golang.org/grpc", "k8s.io/", "github.com/cilium/"} {
			if strings.HasPrefix(dep, heavy) {
				t.Errorf("pkg/api/client depends on %s", dep)
			}
		}
	}
	if len(deps) > 220 {
		t.Errorf("pkg/api/client depends on %d packages, at most 220 are expected", len(deps))
	}
}

// withTestLog is a package of a library that has a log for tests next to its own log.
const withTestLog = "github.com/envoyproxy/go-control-plane/pkg/log"

// Only the simulator and tests run an etcd: the agent's binary has no etcd server. None of our packages in it imports
// package testing.
func TestTheAgentHasNoEtcdServer(t *testing.T) {
	t.Parallel()
	for dep, imported := range list(t, "-deps", "./cmd/mesh-agent") {
		if strings.HasPrefix(dep, "go.etcd.io/etcd/server") || strings.HasPrefix(dep, "simtest/") {
			t.Errorf("mesh-agent depends on %s", dep)
		}
		if dep != withTestLog && slices.Contains(imported, "testing") {
			t.Errorf("mesh-agent depends on %s, which imports testing", dep)
		}
	}
}
