// Package agenttest runs the whole program in a process of its own, or an agent in that of the test, for the tests of
// all packages that need one.
package agenttest

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/agent"
	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/base/logging"
	"github.com/mesh-agent/mesh-agent/internal/base/version"
	"github.com/mesh-agent/mesh-agent/internal/cli"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// AsAgent is the environment variable that makes the test binary run as the real program, so that tests can run it in a
// process of its own.
const AsAgent = "MESH_AGENT_TEST_BINARY"

// Main is the TestMain of packages whose tests run the program.
func Main(m *testing.M) {
	if os.Getenv(AsAgent) != "" {
		os.Exit(cli.Main("", os.Args[1:]))
	}
	etcdtest.Main(m)
}

// Must fails the test on an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// InProcess runs a whole agent in the test's process, until stop is called or the test ends. The methods of a run
// command lines against it.
func InProcess(t *testing.T, flags map[string]string) (a *Process, stop func()) {
	t.Helper()
	tmp, err := os.MkdirTemp("", "agent") // short, as the path of a socket has a limit
	Must(t, err)
	_, level, err := logging.New(io.Discard, "info", "text")
	Must(t, err)
	a = &Process{T: t, Socket: filepath.Join(tmp, "a.sock"), Log: new(waittest.Output)}
	s := config.NewSettings()
	Must(t, errors.Join(s.Set("listen", "127.0.0.1:0"), s.Set("socket", a.Socket)))
	for name, value := range flags {
		Must(t, s.Set(name, value))
	}
	c, err := s.Load(func(string) string { return "" })
	Must(t, errors.Join(err, s.Check()))
	h := agent.NewHive(version.Info{}, config.ModeRun, c, level)
	log := slog.New(slog.NewTextHandler(a.Log, nil))
	Must(t, h.Start(log, t.Context()))
	stop = sync.OnceFunc(func() {
		if err := h.Stop(log, context.Background()); err != nil {
			t.Errorf("stop: %v", err)
		}
		_ = os.RemoveAll(tmp)
	})
	t.Cleanup(stop)
	return a, stop
}

// ReadyClusters returns the names of the clusters that the agent shows as ready, sorted.
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
