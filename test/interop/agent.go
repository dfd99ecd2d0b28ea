package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/simtest/members"
	"github.com/mesh-agent/mesh-agent/simtest/members/agentapi"
)

// AgentEnv names the program mesh-agent; without it, each test builds it, with the race detector.
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
	Must(t, err)
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
	Must(t, err)
	a := &Agent{dir: dir, Process: &members.Process{
		Name: mode, Socket: filepath.Join(dir, "s"), Log: filepath.Join(dir, "log"),
	}}
	a.Command = append([]string{MeshAgent(t), mode, "--socket", a.Socket, "--listen", "127.0.0.1:0", "--log-format", "json"}, flags...)
	Must(t, a.Start())
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
	Must(t, err)
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

// madeUp reports whether the code is that of a conflict between the contents of
// clusters, which are random and may clash.
func madeUp(code string) bool {
	return strings.HasPrefix(code, "MESH-21") || strings.HasPrefix(code, "MESH-31") || code == "MESH-4102"
}

// Quiet fails the test for complaints without any of these words.
func Quiet(t testing.TB, who string, complaints []LogLine, expected ...string) {
	t.Helper()
	for _, l := range complaints {
		if !slices.ContainsFunc(expected, func(words string) bool { return strings.Contains(l.Text, words) }) {
			t.Errorf("%s complains: %s", who, l.Text)
		}
	}
}

// Quiet fails the test if the agent has refused something, or complained of anything else
// than expected.
func (a *Agent) Quiet(t testing.TB, expected ...string) {
	t.Helper()
	clusters, err := agentapi.List[api.Cluster](t.Context(), a.Socket, "clusters")
	Must(t, err)
	for _, c := range clusters {
		for _, r := range c.Refusals {
			t.Errorf("%s: refused: %+v", c.Name, r)
		}
	}
	Quiet(t, "our agent", a.Complaints(t), expected...)
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
	Must(t, os.MkdirAll(dir, 0o755))
	path := filepath.Join(dir, cluster)
	Must(t, os.WriteFile(path, fmt.Appendf(nil, "endpoints:\n- %s\n", endpoint), 0o644))
	return path
}
