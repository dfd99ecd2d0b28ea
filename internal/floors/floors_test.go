// Package floors holds docs/architecture.md as a test: which package may import which.
package floors

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/mesh-agent/mesh-agent/"

// places are the numbers and words of the table of packages in docs/architecture.md, by
// package. Imports go strictly down, from a number to lower ones. Whatever is a leaf
// may be imported by all and imports leaves alone; what is for tests or a tool uses the
// others, and only tests, tools and cmd/mesh-sim use it.
func places(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+|leaf|tests|tools) \|([^|]*)\|`).FindAllStringSubmatch(string(text), -1) {
		for _, name := range regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(row[2], -1) {
			if all[name[1]] != "" {
				t.Errorf("docs/architecture.md has two places for %s", name[1])
			}
			all[name[1]] = row[1]
		}
	}
	return all
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
	all := places(t)
	place := func(pkg string) string {
		if strings.HasPrefix(pkg, "test/") {
			return all["test/…"]
		}
		return all[owner(pkg)]
	}
	imports := list(t, "./...")
	for from, imported := range imports {
		height, numbered := strconv.Atoi(place(from))
		if place(from) == "" {
			t.Errorf("%s has no place: give it a row in docs/architecture.md", from)
		}
		for _, to := range imported {
			to, ours := strings.CutPrefix(to, module)
			if !ours || owner(to) != to || place(to) == "leaf" {
				continue
			}
			below, placed := strconv.Atoi(place(to))
			switch {
			case place(from) == "leaf":
				t.Errorf("%s is a leaf and imports %s", from, to)
			case numbered == nil && placed != nil && from != "cmd/mesh-sim":
				t.Errorf("%s imports %s, which is for tests", from, to)
			case numbered == nil && placed == nil && below >= height:
				t.Errorf("%s (floor %d) imports %s (floor %d)", from, height, to, below)
			}
		}
	}
	for pkg := range all {
		if _, there := imports[pkg]; !there && pkg != "test/…" {
			t.Errorf("docs/architecture.md has a row for %s, which is not there", pkg)
		}
	}
}

// withTestLog is a package of a library that has a log for tests beside its own.
const withTestLog = "github.com/envoyproxy/go-control-plane/pkg/log"

// Only the simulator and tests run an etcd: the agent's binary stays without. Nothing of ours in it imports
// package testing.
func TestTheAgentHasNoEtcdServer(t *testing.T) {
	t.Parallel()
	for dep, imported := range list(t, "-deps", "./cmd/mesh-agent") {
		if strings.HasPrefix(dep, "go.etcd.io/etcd/server") || dep == "internal/etcdserver" {
			t.Errorf("mesh-agent depends on %s", dep)
		}
		if dep != withTestLog && slices.Contains(imported, "testing") {
			t.Errorf("mesh-agent depends on %s, which imports testing", dep)
		}
	}
}
