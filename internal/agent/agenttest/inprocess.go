package agenttest

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/agent"
	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/logging"
	"github.com/mesh-agent/mesh-agent/internal/version"
	"github.com/mesh-agent/mesh-agent/pkg/api"
)

// InProcess runs a whole agent in the test's process, until stop is called or the
// test ends. What is returned asks it from the command line.
func InProcess(t *testing.T, flags map[string]string) (a *Process, stop func()) {
	t.Helper()
	tmp, err := os.MkdirTemp("", "agent") // short: the path of a socket has a limit
	if err != nil {
		t.Fatal(err)
	}
	_, level, err := logging.New(io.Discard, "info", "text")
	if err != nil {
		t.Fatal(err)
	}
	a = &Process{T: t, Socket: filepath.Join(tmp, "a.sock"), Log: new(syncBuffer)}
	s := config.NewSettings()
	for name, value := range flags {
		if err := s.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]string{"listen": "127.0.0.1:0", "socket": a.Socket} {
		if err := s.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	h := agent.NewHive(version.Info{}, config.ModeRun, level)
	s.Give(h)
	log := slog.New(slog.NewTextHandler(a.Log, nil))
	if err := h.Start(log, t.Context()); err != nil {
		t.Fatal(err)
	}
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		if err := h.Stop(log, context.Background()); err != nil {
			t.Errorf("stop: %v", err)
		}
		_ = os.RemoveAll(tmp)
	}
	t.Cleanup(stop)
	return a, stop
}

// names are those of the clusters that the agent shows as ready, sorted.
func (a *Process) ReadyClusters() (names []string) {
	a.T.Helper()
	for _, c := range List[api.Cluster](a, "clusters") {
		if c.Ready {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return names
}
