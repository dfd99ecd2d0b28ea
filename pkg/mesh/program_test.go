package mesh_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/doctest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestTheProgramOfTheDocument: the example program of docs/embedding.md prints objects in a readable form, first the
// present ones and then a change, and exits without an error.
func TestTheProgramOfTheDocument(t *testing.T) {
	waittest.Long(t)
	t.Parallel()
	east := startCluster("east", 1)
	t.Cleanup(east.stop)
	east.put("10.1.0.7", "web-0")
	web := wire.Services.Key("east", false, "default/web")
	service := func(backends map[string]any) map[string]any {
		return map[string]any{"cluster": "east", "namespace": "default", "name": "web", "backends": backends, "shared": true, "includeExternal": true, "clusterID": 1}
	}
	http := map[string]any{"http": map[string]any{"Protocol": "TCP", "Port": 8080}}
	east.write(web, service(map[string]any{"10.1.0.7": http}))

	source := filepath.Join(t.TempDir(), "main.go")
	program := strings.TrimSuffix(source, ".go")
	must(os.WriteFile(source, []byte(doctest.Block(t, "../../docs/embedding.md", "package main\n")), 0o600))
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	printed, complaint := new(waittest.Output), new(bytes.Buffer)
	cmd := exec.CommandContext(t.Context(), program, east.directory, "10.1.0.7")
	cmd.Stdout, cmd.Stderr = printed, complaint
	must(cmd.Start())
	came := func(want string) {
		t.Helper()
		waittest.Until(t, want, func() bool { return strings.Contains(printed.String(), want) }, printed.String)
	}
	// The freshness at the end of the line depends on the speed of the machine: synced, or stale.
	came("10.1.0.7/32 of east: pod default/web-0, identity 66536 [default/web: 1 backends, east 1] s")
	came("\nupsert services default/web: 1 backends, east 1\n  connections go to 10.1.0.7 of east (http 8080/TCP) and 0 more\n")
	came("\nsynced services")
	east.write(web, service(map[string]any{"10.1.0.7": http, "10.1.0.8": http}))
	came("\nupsert services default/web: 2 backends, east 2\n  connections go to 10.1.0.7 of east (http 8080/TCP) and 1 more\n")
	must(cmd.Process.Signal(syscall.SIGINT))
	if err := cmd.Wait(); err != nil || complaint.Len() > 0 {
		t.Errorf("it ended with %v, %s", err, complaint.String())
	}
	if text := printed.String(); strings.Contains(text, "0x") || strings.Contains(text, "&{") {
		t.Errorf("it prints what nobody can read:\n%s", text)
	}
}
