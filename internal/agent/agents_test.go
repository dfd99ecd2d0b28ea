package agent_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http2"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest"
	"github.com/mesh-agent/mesh-agent/simtest/sim"
	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
)

// There is no global state: two agents in one process have nothing in common.
func TestTwoAgentsInOneProcess(t *testing.T) {
	t.Parallel()
	one := meshtest.Run(t, contents.Default("a1", 1), contents.Default("a2", 2))
	two := meshtest.Run(t, contents.Default("b1", 1)) // the same ID, in another mesh
	first, stopFirst := agenttest.InProcess(t, map[string]string{"clustermesh-config": one.Dir(), "cluster-name": "x", "cluster-id": "10"})
	second, _ := agenttest.InProcess(t, map[string]string{"clustermesh-config": two.Dir(), "cluster-name": "y", "cluster-id": "2"})
	first.Until("the first to have its clusters", func() bool { return slices.Equal(first.ReadyClusters(), []string{"a1", "a2"}) })
	second.Until("the second to have its cluster", func() bool { return slices.Equal(second.ReadyClusters(), []string{"b1"}) })
	for a, of := range map[*agenttest.Process]*sim.Mesh{first: one, second: two} {
		if diff := cmp.Diff(expected(t, of), shown(a)); diff != "" {
			t.Error(diff)
		}
	}
	stopFirst()
	if _, _, code := first.Call("status"); code != exit.Usage {
		t.Errorf("the first is stopped: exit %d", code)
	}
	if _, err := two.Clusters()[0].Churn(t.Context(), 50); err != nil {
		t.Fatal(err)
	}
	want := expected(t, two)
	second.Until("the second to go on", func() bool { return cmp.Equal(want, shown(second)) })
}

// The mesh directory may be created after the agent's start, and may be deleted and created again.
func TestADirectoryThatComesAndGoes(t *testing.T) {
	t.Parallel()
	m := meshtest.Run(t, meshtest.Clusters(2)...)
	dir := filepath.Join(t.TempDir(), "later")
	a := agenttest.StartAgent(t, dir, "--cluster-name", "own", "--cluster-id", "250")
	if out, _, code := a.Call("status"); code != exit.Unwell || !strings.Contains(out, dir) {
		t.Errorf("without a directory: exit %d\n%s", code, out)
	}
	for _, resource := range []string{"clusters", "nodes", "services", "serviceexports", "identities", "ips", "conflicts"} {
		if items := agenttest.List[any](a, resource); len(items) != 0 {
			t.Errorf("%s of no cluster: %v", resource, items)
		}
	}
	fill := func(names ...string) {
		t.Helper()
		agenttest.Must(t, os.Mkdir(dir, 0o700))
		for _, name := range names {
			data, err := os.ReadFile(filepath.Join(m.Dir(), name))
			agenttest.Must(t, err)
			agenttest.Must(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
		}
	}
	fill("cluster1")
	a.Until("cluster1", func() bool { return slices.Equal(a.ReadyClusters(), []string{"cluster1"}) })

	// Without the directory the agent cannot see which files were removed, so it keeps all clusters.
	agenttest.Must(t, os.RemoveAll(dir))
	a.Until("the missing directory to be reported", func() bool {
		out, _, _ := a.Call("status")
		return strings.Contains(out, "the directory itself does not exist; the agent keeps the data of the clusters")
	})
	if got := a.ReadyClusters(); !slices.Equal(got, []string{"cluster1"}) {
		t.Errorf("without the directory: %v", got)
	}
	fill("cluster2")
	a.Until("cluster2 instead", func() bool { return slices.Equal(a.ReadyClusters(), []string{"cluster2"}) })
	a.Until("nothing of cluster1", func() bool {
		return !slices.ContainsFunc(agenttest.List[api.Node](a, "nodes"), func(n api.Node) bool { return n.Cluster == "cluster1" })
	})
}

// TestGRPCDoesNotLog: a remote that ends every connection with an error adds nothing to stderr except the lines of our
// own log.
func TestGRPCDoesNotLog(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	agenttest.Must(t, err)
	var met atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			met.Add(1)
			f := http2.NewFramer(c, nil)
			_ = f.WriteSettings()
			_ = f.WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, []byte("too_many_pings"))
			defer c.Close() // the client closes it
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-ended })
	dir := t.TempDir()
	agenttest.Must(t, os.WriteFile(filepath.Join(dir, "c1"), fmt.Appendf(nil, "endpoints:\n- http://%s\n", l.Addr()), 0o600))
	a := agenttest.StartAgent(t, dir)
	a.Until("the agent to try again and again", func() bool { return met.Load() > 3 })
	a.Stop()
	if log := a.Log.String(); strings.Contains(log, "[transport]") || !strings.Contains(log, "level=") && !strings.Contains(log, `"level":`) {
		t.Errorf("gRPC has logged, or we have not:\n%.2000s", log)
	}
}

func TestMain(m *testing.M) { agenttest.Main(m) }
