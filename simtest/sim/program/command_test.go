package program

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/meshtest"
	"github.com/mesh-agent/mesh-agent/simtest/sim"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func TestCommandsExitCodeIsReported(t *testing.T) {
	t.Parallel()
	err := runCommand(t.Context(), []string{"/bin/sh", "-c", "exit 3"}, nil, nil)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("error is %v", err)
	}
	if err := runCommand(t.Context(), []string{"/bin/true"}, nil, nil); err != nil {
		t.Error(err)
	}
}

func TestCommandEndsWithTheContext(t *testing.T) {
	t.Parallel()
	started, ended := filepath.Join(t.TempDir(), "started"), filepath.Join(t.TempDir(), "ended")
	script := `trap 'echo > "$2"; exit 1' TERM; echo > "$1"; while :; do sleep 0.05; done`
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- runCommand(ctx, []string{"/bin/sh", "-c", script, "sh", started, ended}, nil, nil) }()
	waittest.Until(t, "the command to start", func() bool {
		_, err := os.Stat(started)
		return err == nil
	})
	cancel()
	if err := <-done; err != nil {
		t.Errorf("ended with %v", err)
	}
	if _, err := os.Stat(ended); err != nil {
		t.Error("the command was not asked to end")
	}
}

func TestThePageOfAnAgent(t *testing.T) {
	t.Parallel()
	for want, command := range map[string][]string{
		"http://127.0.0.1:9979/ui/": {"agent", "run"},
		"http://[::1]:1/ui/":        {"agent", "run", "--listen", "[::1]:1"},
		"":                          {"agent", "run", "--ui=false"},
	} {
		if got := page(command); got != want {
			t.Errorf("%v: %q", command, got)
		}
	}
}

func TestAgentFlags(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		command []string
		want    string
	}{
		{[]string{"agent", "run", "--socket", "/tmp/s"}, " --socket /tmp/s"},
		{[]string{"agent", "run", "--socket=/tmp/s"}, " --socket /tmp/s"},
		{[]string{"agent", "run", "--listen=127.0.0.1:1"}, " --server http://127.0.0.1:1"},
		{[]string{"agent", "run", "--socket"}, ""},
		{[]string{"agent"}, ""},
	} {
		if got := agentFlags(tc.command); got != tc.want {
			t.Errorf("%v: %q", tc.command, got)
		}
	}
}

// TestTheScreen: with the lines before it, it fits a terminal, and the last line is only the URL.
func TestTheScreen(t *testing.T) {
	t.Parallel()
	m, err := sim.OpenMesh(t.Context(), meshtest.Clusters(3), sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	var report strings.Builder
	if err := (mesh{m}).loadAndReport(t.Context(), &report); err != nil {
		t.Fatal(err)
	}
	command := []string{"bin/mesh-agent", "run", "--dns", "127.0.0.1:5300", "--xds", "unix:/tmp/mesh-sim-1234567890/xds.sock"}
	text := strings.ReplaceAll(mesh{m}.screen(command), os.Args[0], "bin/mesh-sim")
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	// The lines before it: one for each cluster, those of the mesh (two), the control socket and the log.
	if before := strings.Count(report.String(), "\n") + 2; before+len(lines) > 23 {
		t.Errorf("%d lines and %d before them are more than 23:\n%s%s", len(lines), before, report.String(), text)
	}
	for _, line := range lines {
		if len(line) > 80 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
	if last := lines[len(lines)-1]; last != "http://127.0.0.1:9979/ui/" {
		t.Errorf("the last line is %q", last)
	}
	if text := (mesh{m}).screen(append(command, "--ui=false")); strings.Contains(text, "browser") || !strings.HasSuffix(text, "was made.\n") {
		t.Errorf("without the page:\n%s", text)
	}
}

// TestWaitListening: the wait ends when a server listens, and with the context.
func TestWaitListening(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	waitListening(t.Context(), l.Addr().String())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	waitListening(ctx, l.Addr().String())
	if t.Context().Err() != nil {
		t.Error("it waited for the whole test")
	}
}

// TestTheEndOfALog: the last output of a command that failed.
func TestTheEndOfALog(t *testing.T) {
	t.Parallel()
	if log, err := openLog(""); log != nil || err != nil {
		t.Errorf("without a path: %v, %v", log, err)
	}
	if _, err := openLog(filepath.Join(t.TempDir(), "no", "such")); err == nil || !strings.Contains(err.Error(), "log of the command") {
		t.Errorf("where there is no directory: %v", err)
	}
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":   {"", ""},
		"one line":  {"a\n", "a\n"},
		"many":      {strings.Repeat("old\n", 100) + strings.Repeat("new\n", shownLines), strings.Repeat("new\n", shownLines)},
		"very much": {strings.Repeat("x", 2*shownBytes) + "\nlast\n", strings.Repeat("x", shownBytes-6) + "\nlast\n"},
	} {
		log, err := openLog(filepath.Join(t.TempDir(), "log"))
		if err != nil {
			t.Fatal(err)
		}
		if err := runCommand(t.Context(), []string{"/usr/bin/printf", "%s", tc.text}, nil, log); err != nil {
			t.Fatal(err)
		}
		if got := lastLines(log); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
		_ = log.Close()
	}
}
