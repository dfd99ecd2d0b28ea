package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/members"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

// AgentEnv names the program mesh-agent; without it, each test builds it, with the
// race detector.
const AgentEnv = "MESH_AGENT"

// Agent is a running mesh-agent, in any of its modes.
type Agent struct {
	*members.Process
	dir string
}

// MeshAgent returns the path of the program.
func MeshAgent(t testing.TB) string {
	t.Helper()
	if path := os.Getenv(AgentEnv); path != "" {
		return path
	}
	const module = "github.com/mesh-agent/mesh-agent"
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	must(t, err)
	path := filepath.Join(t.TempDir(), "mesh-agent")
	cmd := exec.Command("go", "build", "-race", "-o", path, module+"/cmd/mesh-agent")
	cmd.Dir = strings.TrimSpace(string(root)) // with the requirements of its own
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building mesh-agent: %v: %s", err, out)
	}
	return path
}

// StartAgent starts mesh-agent in a mode until the end of the test, listening only
// on a socket and logging JSON. It can be killed and started again before.
func StartAgent(t testing.TB, mode string, flags ...string) *Agent {
	t.Helper()
	dir, err := os.MkdirTemp("", "interop-") // short, for the socket's path
	must(t, err)
	a := &Agent{dir: dir, Process: &members.Process{
		Name: mode, Socket: filepath.Join(dir, "s"), Log: filepath.Join(dir, "log"),
	}}
	a.Command = append([]string{MeshAgent(t), mode, "--socket", a.Socket, "--listen", "127.0.0.1:0", "--log-format", "json"}, flags...)
	must(t, a.Start())
	t.Cleanup(func() {
		if a.Running() {
			a.Interrupt()
		}
		if err := a.Wait(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			for _, l := range a.Complaints(t) {
				t.Logf("%s: %s", mode, l.Text)
			}
		}
		_ = os.RemoveAll(dir) // of the temporary files of the system
	})
	return a
}

// Complaints returns what the agent has logged as a warning or an error, or not as
// log lines at all.
func (a *Agent) Complaints(t testing.TB) []LogLine {
	t.Helper()
	text, err := os.ReadFile(a.Log)
	must(t, err)
	var found []LogLine
	for line := range strings.Lines(string(text)) {
		var fields struct{ Level, Msg, Code string }
		err := json.Unmarshal([]byte(line), &fields)
		if err == nil && madeUp(fields.Code) {
			continue
		}
		if err != nil || fields.Level != "info" && fields.Level != "debug" {
			found = append(found, LogLine{Level: fields.Level, Message: fields.Msg, Text: strings.TrimSpace(line)})
		}
	}
	return found
}

// madeUp tells whether the code is that of a conflict between the contents of
// clusters, which are random and may clash.
func madeUp(code string) bool {
	return strings.HasPrefix(code, "MESH-21") || strings.HasPrefix(code, "MESH-31") || code == "MESH-4102"
}

// List returns all objects of a resource, as the agent answers now.
func List[T any](ctx context.Context, a *Agent, resource string) ([]T, error) {
	c, err := client.New(client.Options{Socket: a.Socket})
	if err != nil {
		return nil, err
	}
	defer c.Close() //nolint:errcheck // nothing can be lost
	list, err := client.List[T](ctx, c, resource, client.Query{})
	if err != nil {
		return nil, err
	}
	defer list.Close() //nolint:errcheck // nothing can be lost
	var all []T
	for one, err := range list.All(ctx) {
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// Get returns the answer to GET /v1/PATH.
func Get[T any](ctx context.Context, a *Agent, path ...string) (*T, error) {
	c, err := client.New(client.Options{Socket: a.Socket})
	if err != nil {
		return nil, err
	}
	defer c.Close() //nolint:errcheck // nothing can be lost
	return client.Get[T](ctx, c, append([]string{"v1"}, path...)...)
}

// Until waits until cond has no error any more.
func Until(t testing.TB, what string, limit time.Duration, cond func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), limit, errors.New("the time is over"))
	defer cancel()
	var last error
	for {
		err := cond(ctx)
		if err == nil {
			return
		}
		if last == nil || ctx.Err() == nil { // else it says only that the time is over
			last = err
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waited in vain %s for %s: %v", limit, what, last)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// ClientFile writes a client file of the mesh directory dir, made if need be.
func ClientFile(t testing.TB, dir, cluster, endpoint string) string {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o755))
	path := filepath.Join(dir, cluster)
	must(t, os.WriteFile(path, fmt.Appendf(nil, "endpoints:\n- %s\n", endpoint), 0o644))
	return path
}
