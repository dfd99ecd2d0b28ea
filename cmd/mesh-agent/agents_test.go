package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/logging"
	"github.com/mesh-agent/mesh-agent/internal/sim"
	"github.com/mesh-agent/mesh-agent/pkg/api"
)

// inProcess runs a whole agent in the test's process, until stop is called or the
// test ends. What is returned asks it from the command line.
func inProcess(t *testing.T, flags map[string]string) (a *process, stop func()) {
	t.Helper()
	tmp, err := os.MkdirTemp("", "agent") // short: the path of a socket has a limit
	if err != nil {
		t.Fatal(err)
	}
	_, level, err := logging.New(io.Discard, "info", "text")
	if err != nil {
		t.Fatal(err)
	}
	a = &process{t: t, socket: filepath.Join(tmp, "a.sock"), log: new(syncBuffer)}
	s := newSettings()
	for name, value := range flags {
		if err := s.flags.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]string{"listen": "127.0.0.1:0", "socket": a.socket} {
		if err := s.flags.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	h := newHive(modeRun, level)
	s.give(h)
	log := slog.New(slog.NewTextHandler(a.log, nil))
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
func (a *process) readyClusters() (names []string) {
	a.t.Helper()
	for _, c := range list[api.Cluster](a, "clusters") {
		if c.Ready {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Nothing is global: two agents in one process have nothing in common.
func TestTwoAgentsInOneProcess(t *testing.T) {
	t.Parallel()
	one := simulateAll(t, []sim.Cluster{sim.Default("a1", 1), sim.Default("a2", 2)})
	two := simulateAll(t, []sim.Cluster{sim.Default("b1", 1)}) // the same ID, in another mesh
	first, stopFirst := inProcess(t, map[string]string{"clustermesh-config": one.Dir(), "cluster-name": "x", "cluster-id": "10"})
	second, _ := inProcess(t, map[string]string{"clustermesh-config": two.Dir(), "cluster-name": "y", "cluster-id": "2"})
	first.until("the first to have its clusters", func() bool { return slices.Equal(first.readyClusters(), []string{"a1", "a2"}) })
	second.until("the second to have its cluster", func() bool { return slices.Equal(second.readyClusters(), []string{"b1"}) })
	for a, of := range map[*process]*sim.Mesh{first: one, second: two} {
		want := expected(t, of)
		got := a.shown()
		if len(got) != len(want) {
			t.Errorf("%d lines shown, want %d", len(got), len(want))
		}
		for key, text := range want {
			if got[key] != text {
				t.Errorf("%s: %q, want %q", key, got[key], text)
			}
		}
	}
	stopFirst()
	if _, _, code := first.call("status"); code != exitUsage {
		t.Errorf("the first is stopped: exit %d", code)
	}
	if _, err := two.Clusters()[0].Churn(t.Context(), 50); err != nil {
		t.Fatal(err)
	}
	want := expected(t, two)
	second.until("the second to go on", func() bool { return len(second.shown()) == len(want) && second.shows(want) })
}

// shows tells whether the agent shows all of that.
func (a *process) shows(want map[string]string) bool {
	a.t.Helper()
	got := a.shown()
	for key, text := range want {
		if got[key] != text {
			return false
		}
	}
	return true
}

// The mesh directory may come later than the agent, and be made anew.
func TestADirectoryThatComesAndGoes(t *testing.T) {
	t.Parallel()
	m := simulate(t, 2)
	dir := filepath.Join(t.TempDir(), "later")
	a := startAgent(t, dir, "--cluster-name", "own", "--cluster-id", "250")
	if out, _, code := a.call("status"); code != exitUnwell || !strings.Contains(out, dir) {
		t.Errorf("without a directory: exit %d\n%s", code, out)
	}
	for _, resource := range []string{"clusters", "nodes", "services", "serviceexports", "identities", "ips", "conflicts"} {
		if items := list[any](a, resource); len(items) != 0 {
			t.Errorf("%s of no cluster: %v", resource, items)
		}
	}
	fill := func(names ...string) {
		t.Helper()
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			data, err := os.ReadFile(filepath.Join(m.Dir(), name))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill("cluster1")
	a.until("cluster1", func() bool { return slices.Equal(a.readyClusters(), []string{"cluster1"}) })

	// Gone: nobody can tell what was removed, so everything is kept.
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	a.until("the missing directory to be told", func() bool {
		out, _, _ := a.call("status")
		return strings.Contains(out, "the directory itself cannot be read; what is known is kept")
	})
	if got := a.readyClusters(); !slices.Equal(got, []string{"cluster1"}) {
		t.Errorf("without the directory: %v", got)
	}
	fill("cluster2")
	a.until("cluster2 instead", func() bool { return slices.Equal(a.readyClusters(), []string{"cluster2"}) })
	a.until("nothing of cluster1", func() bool {
		return !slices.ContainsFunc(list[api.Node](a, "nodes"), func(n api.Node) bool { return n.Cluster == "cluster1" })
	})
}
