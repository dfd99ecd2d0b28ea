package consumers

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/programtest"
)

// openAPI runs a program of ./openapi in a directory that has the sources of the client, and returns what it prints.
func openAPI(t *testing.T, dir, program string, args ...string) (string, error) {
	t.Helper()
	modules, err := filepath.Abs(filepath.Join("openapi", "node_modules"))
	must(t, err)
	path := filepath.Join(modules, ".bin", program)
	if program == "node" {
		path = programtest.Find(t, "consumers", "node")
	} else if _, err := os.Stat(path); err != nil {
		programtest.Missing(t, program+" is missing: make consumers installs it")
	}
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "NODE_PATH="+modules, "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, t.Output()
	err = cmd.Run()
	return out.String(), err
}

// client is a directory with the sources of ./openapi and the document of the agent.
func (w *world) client() (dir string) {
	w.t.Helper()
	dir = w.t.TempDir()
	for _, name := range []string{"client.ts", "package.json", "tsconfig.json"} {
		text, err := os.ReadFile(filepath.Join("openapi", name))
		must(w.t, err)
		programtest.Write(w.t, dir, name, string(text))
	}
	modules, err := filepath.Abs(filepath.Join("openapi", "node_modules"))
	must(w.t, err)
	must(w.t, os.Symlink(modules, filepath.Join(dir, "node_modules")))
	resp, err := http.Get("http://" + w.api + "/openapi.json")
	must(w.t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	must(w.t, err)
	programtest.Write(w.t, dir, "openapi.json", string(text))
	return dir
}

// TestOpenAPI: a linter finds nothing in the document, and a client with types generated from it, checked by the
// compiler, finds the agent's data.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	programtest.Find(t, "consumers", "node")
	w := newWorld(t)
	w.shop()
	w.publish("east", "web", "127.1.0.9")
	w.start()
	w.until("both services", func() bool {
		out, _, _ := w.agent.Call("get", "services", "-o", "name")
		return strings.Contains(out, "shop/cart") && strings.Contains(out, "shop/web")
	})
	dir := w.client()

	out, err := openAPI(t, dir, "redocly", "lint", "--format=json", "openapi.json")
	var report struct {
		Totals   struct{ Errors, Warnings, Ignored int }
		Problems []struct{ RuleID, Message string }
	}
	if failed := json.Unmarshal([]byte(out), &report); failed != nil || err != nil || report.Totals.Errors+report.Totals.Warnings+report.Totals.Ignored > 0 {
		t.Errorf("the linter: %v, %v: %+v\n%.2000s", err, failed, report, out)
	}
	for _, step := range [][]string{{"openapi-typescript", "openapi.json", "-o", "types.ts"}, {"tsc", "-p", "."}} {
		if out, err := openAPI(t, dir, step[0], step[1:]...); err != nil {
			t.Fatalf("%s: %v\n%s", step[0], err, out)
		}
	}
	out, err = openAPI(t, dir, "node", "client.js", "http://"+w.api)
	must(t, err)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	want := []string{
		"cluster east 1 ready keep 0", "cluster north 3 ready keep 0", "cluster west 2 ready keep 0",
		"service shop cart", "service shop many", "service shop web", "found cart", "missing 404 Not Found", "wrong 400 400",
	}
	if slices.Sort(lines[:min(3, len(lines))]); !slices.Equal(lines, want) {
		t.Errorf("the client prints\n%s\nwant\n%s", out, strings.Join(want, "\n"))
	}
}
