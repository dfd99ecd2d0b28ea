package program

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/waiting/waittest"
)

func TestCommandsExitCodeIsReported(t *testing.T) {
	t.Parallel()
	err := runCommand(t.Context(), []string{"/bin/sh", "-c", "exit 3"}, nil)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("error is %v", err)
	}
	if err := runCommand(t.Context(), []string{"/bin/true"}, nil); err != nil {
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
	go func() { done <- runCommand(ctx, []string{"/bin/sh", "-c", script, "sh", started, ended}, nil) }()
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
