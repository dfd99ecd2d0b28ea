package render_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/mesh-agent/mesh-agent/internal/base/logging"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/cli/render"
	"github.com/mesh-agent/mesh-agent/internal/serve/httpapi"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest/viewtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// agent serves a world on a unix socket.
type agent struct {
	*viewtest.World
	t      *testing.T
	dir    string
	socket string
	stop   func()
}

func newAgent(t *testing.T) *agent {
	t.Helper()
	a := &agent{World: viewtest.New(t), t: t, dir: t.TempDir()}
	a.socket = filepath.Join(a.dir, "s")
	a.start()
	t.Cleanup(func() { a.stop() })
	return a
}

func (a *agent) start() {
	a.t.Helper()
	_, level, err := logging.New(io.Discard, "info", "text")
	if err != nil {
		a.t.Fatal(err)
	}
	s, err := httpapi.NewServer(httpapi.Params{
		Agent: api.AgentInfo{Cluster: viewtest.Own, ClusterID: 1}, View: a.View, Gatherer: prometheus.NewRegistry(), LogLevel: level, Settings: api.Settings{},
	}, slog.New(slog.DiscardHandler))
	if err == nil {
		err = s.Listen("", a.socket, false)
	}
	if err != nil {
		a.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 2)
	go func() { done <- s.Serve(ctx) }()
	go func() { _ = a.View.Run(ctx); done <- nil }()
	a.stop = sync.OnceFunc(func() {
		cancel()
		for range 2 {
			if err := <-done; err != nil {
				a.t.Error(err)
			}
		}
	})
}

// file writes a file of the test atomically, so that a concurrent reader never gets a part of it, and returns its path.
func (a *agent) file(name, text string) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	if err := errors.Join(os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path)); err != nil {
		a.t.Fatal(err)
	}
	return path
}

func (a *agent) has(name string) string {
	text, err := os.ReadFile(filepath.Join(a.dir, name))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// run runs the command to its end.
func (a *agent) run(ctx context.Context, args ...string) (out, said string, err error) {
	var o waittest.Output
	said, err = a.runTo(ctx, &o, args...)
	return o.String(), said, err
}

func (a *agent) runTo(ctx context.Context, out io.Writer, args ...string) (said string, err error) {
	c := &command.Env{Getenv: func(string) string { return "" }, Environ: func() []string { return nil }, Now: time.Now, DefaultSocket: a.socket, DefaultServer: "127.0.0.1:1"}
	cmd := render.New(c)
	var e bytes.Buffer
	cmd.SetOut(out)
	cmd.SetErr(io.MultiWriter(&e, out))
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(ctx)
	return e.String(), err
}

// follow runs the command until the end of the test, or until stop is called.
func (a *agent) follow(args ...string) (said *waittest.Output, stop func()) {
	a.t.Helper()
	said = new(waittest.Output)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := a.runTo(ctx, said, args...)
		ended <- err
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			a.t.Errorf("it ended with %v", err)
		}
	})
	a.t.Cleanup(stop)
	return said, stop
}

const upstream = `{{ range (backends "shop/cart" "http").Now }}server {{ .Address }};
{{ end }}`

func TestOnce(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	a.Play(t, "service own shop/cart affinity=local 10.0.0.1\nservice east shop/cart 10.1.0.1")
	tmpl := a.file("t", upstream)
	out := filepath.Join(a.dir, "sub", "out")
	_, said, err := a.run(t.Context(), "--once", "-t", tmpl+"="+out, "--exec", "echo ran >> "+filepath.Join(a.dir, "log"))
	if err != nil || a.has("sub/out") != "server 10.0.0.1:8080;\n" || !strings.Contains(said, "wrote "+out) || a.has("log") != "ran\n" {
		t.Errorf("%v, %q, said %q, %q", err, a.has("sub/out"), said, a.has("log"))
	}
	if err := os.Chmod(out, 0o640); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(out)
	if err != nil {
		t.Fatal(err)
	}
	if _, said, err = a.run(t.Context(), "--once", "-t", tmpl+"="+out, "--exec", "echo ran >> "+filepath.Join(a.dir, "log")); err != nil || said != "" || a.has("log") != "ran\n" {
		t.Errorf("again: %v, said %q, %q", err, said, a.has("log"))
	}
	if after, err := os.Stat(out); err != nil || !os.SameFile(before, after) {
		t.Errorf("the same text was written again: %v", err)
	}
	a.Play(t, "service own shop/cart")
	if _, _, err := a.run(t.Context(), "--once", "-t", tmpl+"="+out); err != nil || a.has("sub/out") != "server 10.1.0.1:8080;\n" {
		t.Errorf("after a change: %v %q", err, a.has("sub/out"))
	}
	if after, err := os.Stat(out); err != nil || after.Mode().Perm() != 0o640 {
		t.Errorf("its mode is %v, %v", after.Mode(), err)
	}
	dry, _, err := a.run(t.Context(), "--dry-run", "-t", tmpl+"=/no/such/file", "--exec", "false")
	if err != nil || dry != "# /no/such/file\nserver 10.1.0.1:8080;\n" {
		t.Errorf("--dry-run: %v %q", err, dry)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	a.Play(t, "service own shop/cart 10.0.0.1")
	out := a.file("out", "as it was")
	for name, test := range map[string]struct {
		template string
		args     []string
		want     string
	}{
		"an empty file":     {`{{ range (backends "shop/nope").Now }}x{{ end }}`, []string{"--refuse-empty"}, "would be empty"},
		"a check":           {"new", []string{"--check", `grep -q new "$FILE" && echo not good >&2 && exit 3`}, "exit status 3: not good"},
		"a slow check":      {"new", []string{"--check", "sleep 60", "--timeout", "10ms"}, "longer than 10ms"},
		"a mistake":         {"{{ nope }}", nil, `function "nope" not defined`},
		"a field":           {`{{ (backends "shop/cart").Nope }}`, nil, "can't evaluate field Nope"},
		"a name":            {`{{ backends "cart" }}`, nil, "want NAMESPACE/NAME"},
		"a filter":          {`{{ services "color=red" }}`, nil, "is no filter"},
		"the environment":   {`{{ env "HOME" }}`, nil, `function "env" not defined`},
		"no template":       {"", []string{"-t", filepath.Join(a.dir, "nope") + "=" + out}, "no such file"},
		"no file":           {"", []string{"-t", "x"}, "want TEMPLATE=FILE"},
		"twice":             {"x", []string{"-t", filepath.Join(a.dir, "t-twice") + "=" + out}, "written from another template"},
		"a negative wait":   {"x", []string{"--wait", "-1s"}, "--wait must not be negative"},
		"a label of a node": {`{{ range nodes "labels=a b" }}{{ end }}`, nil, "labels"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"--once"}, test.args...)
			if test.template != "" {
				args = append(args, "-t", a.file("t-"+name, test.template)+"="+out)
			}
			_, said, err := a.run(t.Context(), args...)
			if err == nil || !strings.Contains(err.Error(), test.want) || a.has("out") != "as it was" {
				t.Errorf("%v, said %q, the file has %q", err, said, a.has("out"))
			}
			if left, _ := filepath.Glob(filepath.Join(a.dir, ".out*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TestFollow: the file follows the mesh. While the agent is away the file stays, and nothing is written before the
// agent has read everything.
func TestFollow(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	a.Play(t, "not-ready east is being listed")
	tmpl := a.file("t", upstream)
	log := filepath.Join(a.dir, "log")
	said, stop := a.follow("-t", tmpl+"="+filepath.Join(a.dir, "out"), "--wait", "10ms", "--exec", "cat "+filepath.Join(a.dir, "out")+" >> "+log)
	await(t, said, "does not know every cluster yet")
	if text := a.has("out"); !strings.Contains(text, "no such file") {
		t.Errorf("written before the agent is ready: %q", text)
	}
	a.Play(t, "service own shop/cart 10.0.0.1\nready")
	until := func(what, want string) {
		t.Helper()
		waittest.Until(t, what, func() bool { return a.has("out") == want })
	}
	until("the first file", "server 10.0.0.1:8080;\n")
	a.Play(t, "service own shop/cart 10.0.0.2")
	until("a change", "server 10.0.0.2:8080;\n")
	a.stop()
	a.Play(t, "service own shop/cart 10.0.0.3")
	a.start()
	until("a change while the agent was away", "server 10.0.0.3:8080;\n")
	waittest.Until(t, "the command to have run each time", func() bool {
		return a.has("log") == "server 10.0.0.1:8080;\nserver 10.0.0.2:8080;\nserver 10.0.0.3:8080;\n"
	})
	stop()
}

// TestAFailedCommandIsTriedAgain: it is run again until it succeeds, also when nothing changes.
func TestAFailedCommandIsTriedAgain(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	a.Play(t, "service own shop/cart 10.0.0.1")
	gate := filepath.Join(a.dir, "gate")
	said, _ := a.follow("-t", a.file("t", upstream)+"="+filepath.Join(a.dir, "out"), "--exec", "test -e "+gate)
	await(t, said, "--exec: test -e "+gate+": exit status 1")
	a.file("gate", "")
	await(t, said, "ran test -e "+gate)
}

// await waits until a command has written this text.
func await(t *testing.T, said *waittest.Output, what string) {
	t.Helper()
	waittest.Until(t, what, func() bool { return said.Count(what) > 0 }, said.String)
}

// TestNothingIsWrittenWhileNoClusterIsRead: after the sync timeout an agent is ready, even when it could not read any
// cluster since its start. Then the file stays as it is.
func TestNothingIsWrittenWhileNoClusterIsRead(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	a.Play(t, "cluster east unread")
	tmpl, out := a.file("t", upstream), a.file("out", "server 10.1.0.1:8080;\n")
	if _, _, err := a.run(t.Context(), "--once", "-t", tmpl+"="+out); err == nil || !strings.Contains(err.Error(), "does not know every cluster yet") {
		t.Errorf("once: %v", err)
	}
	if text := a.has("out"); text != "server 10.1.0.1:8080;\n" {
		t.Errorf("the file has %q", text)
	}
	a.Play(t, "service east shop/cart 10.1.0.2\ncluster east")
	if _, _, err := a.run(t.Context(), "--once", "-t", tmpl+"="+out); err != nil || a.has("out") != "server 10.1.0.2:8080;\n" {
		t.Errorf("once it is read: %v %q", err, a.has("out"))
	}
}
