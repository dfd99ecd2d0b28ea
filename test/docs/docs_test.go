package docs

import (
	"flag"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/simtest/buildtest"
	"github.com/mesh-agent/mesh-agent/simtest/programtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

var (
	update   = flag.Bool("update", false, "write the real outputs into the pages")
	patience = flag.Duration("patience", 90*time.Second, "how long to wait until a command prints what a page shows")
)

// page is a document whose commands are run.
type page struct {
	file    string
	without []string // sections whose commands need a Kubernetes cluster: test/kubernetes has them
	skip    string   // commands that need another program of the reader, or whose output always differs, as a regular expression
}

func pages() []page {
	return []page{
		{file: "README.md"},
		{file: "docs/tutorial.md"},
		{file: "docs/tour.md"},
		{file: "docs/use.md", without: []string{"EndpointSlices", "The MCS API"}, skip: `^GRPC_XDS_BOOTSTRAP=\S+ \./program|^mesh-agent top`},
	}
}

// build builds both programs, and returns their directory.
func build(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("DOCS_PROGRAMS"); dir != "" { // built before
		return dir
	}
	bin := t.TempDir()
	buildtest.Released(t, "build", "-o", bin, "github.com/mesh-agent/mesh-agent/cmd/mesh-agent", "github.com/mesh-agent/mesh-agent/cmd/mesh-sim")
	return bin
}

// makeTarget is the command of a target of the Makefile, after its build.
func makeTarget(t *testing.T, name string) string {
	t.Helper()
	makefile, err := os.ReadFile("../../Makefile")
	waittest.Must(t, err)
	line := regexp.MustCompile(`(?m)^` + name + `: build\n\t@(.*)$`).FindSubmatch(makefile)
	if line == nil {
		t.Fatalf("the Makefile has no target %s", name)
	}
	return string(line[1])
}

// TestCommands: the commands of the documents have the output in the documents.
func TestCommands(t *testing.T) {
	waittest.Long(t)
	programtest.Find(t, "docs", "bash")
	programtest.Find(t, "docs", "dig")
	programtest.Find(t, "docs", "curl")
	bin := build(t)
	for _, p := range pages() {
		t.Run(filepath.Base(p.file), func(t *testing.T) {
			runPage(t, p, bin)
		})
	}
}

// runPage runs the commands of a page in their order.
func runPage(t *testing.T, p page, bin string) {
	t.Helper()
	path := filepath.Join("..", "..", p.file)
	lines := readPage(t, path)
	all := steps(lines)
	if len(all) == 0 {
		t.Fatal("it has no commands")
	}
	dns, api := programtest.Reserve(t), programtest.Reserve(t)
	_, port, err := net.SplitHostPort(dns)
	waittest.Must(t, err)
	s := newSession(t, bin, "127.0.0.1:5300", dns, "-p 5300", "-p "+port, "127.0.0.1:9979", api)
	s.run("export MESH_AGENT_LISTEN=127.0.0.1:9979 # where nobody else listens")
	got := make(map[int][]string)
	for i, at := range all {
		if slices.Contains(p.without, at.section) || p.skip != "" && regexp.MustCompile(p.skip).MatchString(at.command) {
			continue
		}
		if target, is := strings.CutPrefix(at.command, "make "); is { // it runs until Ctrl-C
			// Without churn every run has the same output.
			at.command = strings.Replace(makeTarget(t, target), "--churn 2", "", 1) + " &"
			at.quiet = true
		}
		output, ok := s.step(at)
		if strings.HasPrefix(all[i].command, "make ") {
			waittest.Until(t, "an agent", func() bool {
				s.run("mesh-agent status --wait --timeout 30s > /dev/null 2>&1")
				return s.code() == "0"
			}, s.background)
		}
		switch {
		case ok:
		case *update:
			got[i] = strings.Split(strings.TrimRight(output, "\n"), "\n")
		default:
			t.Fatalf("%s:%d: %s\nprinted\n%s\nthe page shows\n%s\n(-update writes what is printed; what ran in the background said\n%s)",
				p.file, at.first, at.command, output, strings.Join(at.want, "\n"), s.background())
		}
	}
	if *update && len(got) > 0 {
		waittest.Must(t, os.WriteFile(path, []byte(strings.Join(withOutputs(lines, all, got), "\n")), 0o644))
	}
}
