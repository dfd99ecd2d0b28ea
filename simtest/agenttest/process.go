package agenttest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/simtest/clitest"
	"github.com/mesh-agent/mesh-agent/simtest/members/agentapi"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// Conflicts returns the conflicts that the agent lists, with code, key and clusters.
func (a *Process) Conflicts() (all []string) {
	a.T.Helper()
	conflicts, err := agentapi.List[api.Conflict](a.T.Context(), a.Socket, "conflicts") // a command line takes longer than the measured change
	Must(a.T, err)
	for _, c := range conflicts {
		all = append(all, fmt.Sprintf("%s %s/%s %s", c.Code, c.Kind, c.Subject, strings.Join(c.Clusters, ",")))
	}
	return all
}

// ask decodes the JSON output of a command line. It ignores the exit code.
func ask[T any](a *Process, args ...string) (answer T) {
	a.T.Helper()
	out, errs, code := a.Call(append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		a.T.Fatalf("%v: exit %d, %v, %s%s", args, code, err, out, errs)
	}
	return answer
}

// Status gets the whole status.
func (a *Process) Status() api.Status { return ask[api.Status](a, "status") }

// Lookup returns the owner of an address.
func (a *Process) Lookup(address string) api.Lookup { return ask[api.Lookup](a, "lookup", address) }

// List gets a resource.
func List[T any](a *Process, args ...string) []T {
	a.T.Helper()
	return ask[api.List[T]](a, append([]string{"get"}, args...)...).Items
}

// Program is a command line of the real program, in a process of its own.
func Program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	Must(t, err)
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), AsAgent+"=1", "GORACE=exitcode=66 atexit_sleep_ms=50")
	return cmd
}

// Call runs a command line to its end.
func Call(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := Program(t, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	giveUp := time.AfterFunc(10*time.Minute, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) })
	_ = cmd.Run() // the caller gets the exit code
	giveUp.Stop()
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// Process is a running agent.
type Process struct {
	T      *testing.T
	Socket string
	cmd    *exec.Cmd
	ended  chan struct{} // closed when the process has ended
	Log    *waittest.Output
}

// StartAgent runs the agent on a directory, until the end of the test.
func StartAgent(t *testing.T, dir string, args ...string) *Process {
	t.Helper()
	return StartMode(t, config.ModeRun, nil, append([]string{"--clustermesh-config", dir}, args...)...)
}

// StartMode runs the program in a mode, with these variables, until the end of the test.
func StartMode(t *testing.T, m config.Mode, env []string, args ...string) *Process {
	t.Helper()
	tmp, err := os.MkdirTemp("", "agent") // short, as the path of a socket has a limit
	Must(t, err)
	a := &Process{T: t, Socket: filepath.Join(tmp, "a.sock"), ended: make(chan struct{}), Log: new(waittest.Output)}
	a.cmd = Program(t, append([]string{string(m), "--listen", "127.0.0.1:0", "--socket", a.Socket}, args...)...)
	a.cmd.Env = append(a.cmd.Env, env...)
	a.cmd.Stderr = a.Log
	Must(t, a.cmd.Start())
	go func() {
		_ = a.cmd.Wait() // the process state has the exit code
		close(a.ended)
	}()
	t.Cleanup(func() {
		a.Stop()
		_ = os.RemoveAll(tmp)
		if t.Failed() {
			t.Logf("the agent's log:\n%s", a.Log)
		}
	})
	a.Until("the agent to answer", func() bool {
		select {
		case <-a.ended:
			t.Fatal("the agent ended before it answered")
		default:
		}
		_, _, code := a.Call("get", "clusters")
		return code == exit.OK
	})
	return a
}

// PID is the process ID.
func (a *Process) PID() int { return a.cmd.Process.Pid }

// Stop ends the agent like Kubernetes, and returns its exit code, also if it has ended already.
func (a *Process) Stop() (code int) {
	a.T.Helper()
	_ = a.cmd.Process.Signal(syscall.SIGTERM)
	<-a.ended
	return a.cmd.ProcessState.ExitCode()
}

// Call runs a command line against the agent in this process: hundreds of processes with the race detector cost more
// than the tested work.
func (a *Process) Call(args ...string) (stdout, stderr string, code int) {
	a.T.Helper()
	asks := clitest.With(nil, "", "")
	asks.Cli.Poll = 50 * time.Millisecond
	r := asks.Run(append(args, "--socket", a.Socket)...)
	return r.Out, r.Err, r.Code
}

// Execute runs a command line of the real program against the agent.
func (a *Process) Execute(args ...string) (stdout, stderr string, code int) {
	a.T.Helper()
	return Call(a.T, append(args, "--socket", a.Socket)...)
}

// Patiently is [clitest.Patient] for Call or Execute.
func (a *Process) Patiently(run func(args ...string) (stdout, stderr string, code int), args ...string) (stdout, stderr string, code int) {
	a.T.Helper()
	got := clitest.Patient(func(args ...string) clitest.Result {
		out, errs, code := run(args...)
		return clitest.Result{Code: code, Out: out, Err: errs}
	}, args...)
	return got.Out, got.Err, got.Code
}

// Until waits for a condition.
func (a *Process) Until(what string, ok func() bool) {
	a.T.Helper()
	waittest.Until(a.T, what, ok, func() string {
		out, errs, _ := a.Call("status")
		return out + errs
	})
}

// UnixClient returns an HTTP client for a socket.
func UnixClient(socket string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
}
