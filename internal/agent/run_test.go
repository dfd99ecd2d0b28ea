package agent_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest"
)

func TestTheWholeProgramOnSimulatedClusters(t *testing.T) {
	t.Parallel()
	m := meshtest.Run(t, meshtest.Clusters(3)...)
	a := agenttest.StartAgent(t, m.Dir(), "--cluster-name", "own", "--cluster-id", "250")
	if out, errs, code := a.Call("status", "--wait", "--for=fresh", "--timeout", "10m"); code != exit.OK {
		t.Fatalf("status --wait: exit %d\n%s%s", code, out, errs)
	}
	if diff := cmp.Diff(expected(t, m), shown(a)); diff != "" {
		t.Fatalf("the view differs from the clusters (-want +got):\n%s", diff)
	}
	for _, r := range m.Clusters() {
		if _, err := r.Churn(t.Context(), 300); err != nil {
			t.Fatal(err)
		}
	}
	want := expected(t, m)
	a.Until("the view to follow the churn", func() bool { return cmp.Equal(want, shown(a)) })

	sample := m.Clusters()[0].Sample()
	for address, says := range map[string]string{
		sample.Pod.String():  "is pod " + sample.PodName + " in cluster cluster1",
		sample.Node.String(): "is an address of node cluster1/",
	} {
		if out, errs, code := a.Call("lookup", address); code != exit.OK || !strings.Contains(out, says) {
			t.Errorf("lookup %s: exit %d, want %q in\n%s%s", address, code, says, out, errs)
		}
	}
	if out, _, code := a.Call("lookup", "192.0.2.1"); code != exit.Unwell || !strings.Contains(out, "192.0.2.1") {
		t.Errorf("lookup of an address no cluster claims: exit %d, %q", code, out)
	}

	// One file is deleted: its cluster is removed, and no other.
	agenttest.Must(t, os.Remove(filepath.Join(m.Dir(), "cluster3")))
	for key, value := range want {
		if strings.Contains(value, "cluster3") || strings.Contains(key, "cluster3") {
			delete(want, key)
		}
	}
	a.Until("cluster3 to be gone", func() bool { return len(agenttest.List[api.Cluster](a, "clusters")) == 2 && cmp.Equal(want, shown(a)) })

	if code := a.Stop(); code != exit.OK {
		t.Errorf("SIGTERM: exit %d", code)
	}
	if _, err := os.Stat(a.Socket); !os.IsNotExist(err) {
		t.Errorf("the socket is left behind: %v", err)
	}
	if _, _, code := a.Call("status"); code != exit.Usage {
		t.Errorf("status without an agent: exit %d", code)
	}
}

func TestABadFileHurtsNobodyElse(t *testing.T) {
	t.Parallel()
	m := meshtest.Run(t, meshtest.Clusters(1)...)
	a := agenttest.StartAgent(t, m.Dir())
	a.Until("cluster1 to be ready", func() bool { _, _, code := a.Call("status"); return code == exit.OK })
	bad := filepath.Join(m.Dir(), "broken")
	agenttest.Must(t, os.WriteFile(bad, []byte("endpoints: [unterminated\n"), 0o600))
	a.Until("the broken file to be reported", func() bool {
		out, _, code := a.Call("status")
		return code == exit.Unwell && strings.Contains(out, "broken") && strings.Contains(out, "failed")
	})
	if out, _, code := a.Call("status", "cluster1"); code != exit.OK {
		t.Errorf("cluster1 suffers: exit %d\n%s", code, out)
	}
	// After the repair of its file, a cluster is tried again.
	good, err := os.ReadFile(filepath.Join(m.Dir(), "cluster1"))
	agenttest.Must(t, err)
	agenttest.Must(t, os.WriteFile(bad, good, 0o600))
	a.Until("the mended file to be tried", func() bool {
		out, _, _ := a.Call("status", "broken")
		return strings.Contains(out, "cilium/cluster-config/broken")
	})
}

// TestReadinessNeedNotWait: with a timeout of 0 the agent is ready although a cluster does not answer, since 0 is no
// missing value.
func TestReadinessNeedNotWait(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	agenttest.Must(t, os.WriteFile(filepath.Join(dir, "silent"), []byte("endpoints: [http://127.0.0.1:1]\n"), 0o600))
	for timeout, want := range map[string]string{"0s": "200 ", "1h": "503 "} {
		a := agenttest.StartAgent(t, dir, "--clustermesh-sync-timeout", timeout)
		a.Until("the cluster to be known", func() bool { out, _, _ := a.Call("status"); return strings.Contains(out, "silent") })
		a.Until("/readyz of "+timeout+" to be "+want, func() bool { return strings.HasPrefix(get(t, a, "/readyz"), want) })
	}
}

func TestADirectoryThatIsNotThere(t *testing.T) {
	t.Parallel()
	a := agenttest.StartAgent(t, filepath.Join(t.TempDir(), "later"))
	a.Until("status to say so", func() bool {
		out, _, code := a.Call("status")
		return code == exit.Unwell && strings.Contains(out, "The mesh directory cannot be read")
	})
	a.Until("the warning", func() bool { return strings.Contains(a.Log.String(), "does not exist") })
	// Before the first read of the directory no clusters are known.
	for path, want := range map[string][2]string{"/healthz": {"200 ", ""}, "/readyz": {"503 ", "mesh directory"}, "/metrics": {"200 ", "mesh_agent_clustermesh_remote_clusters 0"}} {
		if got := get(t, a, path); !strings.HasPrefix(got, want[0]) || !strings.Contains(got, want[1]) {
			t.Errorf("%s: want %q in %.2000s", path, want, got)
		}
	}
}

func TestBadInputEndsBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	agenttest.Must(t, os.WriteFile(file, nil, 0o600))
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	agenttest.Must(t, err)
	t.Cleanup(func() { _ = busy.Close() }) // after the parallel tests below
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"an unknown flag":            {[]string{"--nope"}, "unknown flag"},
		"a name that is none":        {[]string{"--cluster-name", "Bad_Name"}, "lower case"},
		"an ID out of range":         {[]string{"--cluster-name", "a", "--cluster-id", "256"}, "0..255"},
		"an ID without a name":       {[]string{"--cluster-id", "1"}, "default cluster name"},
		"a mesh of another size":     {[]string{"--max-connected-clusters", "256"}, "[255, 511]"},
		"a directory that is a file": {[]string{"--clustermesh-config", file}, "not a directory"},
		"an unknown kvstore option":  {[]string{"--kvstore-opt", "etcd.nope=1"}, "etcd.nope"},
		"a kvstore without a port":   {[]string{"--kvstore-opt", "etcd.address=http://127.0.0.1"}, "host and port"},
		"a rate that is none":        {[]string{"--kvstore-opt", "etcd.qps=many"}, "etcd.qps"},
		"a time that runs backwards": {[]string{"--clustermesh-cache-ttl", "-1s"}, "clustermesh-cache-ttl"},
		"no address":                 {[]string{"--listen", "nonsense"}, "no address with a port"},
		"an address in use":          {[]string{"--listen", busy.Addr().String()}, "another process listens"},
		"an unknown level":           {[]string{"--log-level", "loud"}, "loud"},
		"an argument":                {[]string{"please"}, "unexpected argument"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, errs, code := agenttest.Call(t, append([]string{"run", "--listen", "127.0.0.1:0", "--socket", filepath.Join(t.TempDir(), "s")}, c.args...)...)
			lines := strings.Split(strings.TrimSpace(errs), "\n")
			if last := lines[len(lines)-1]; code != exit.Usage || !strings.HasPrefix(last, "Error: ") || !strings.Contains(last, c.want) {
				t.Errorf("exit %d, want %q in %s", code, c.want, errs)
			}
			if len(lines) != 1 && name != "an address in use" {
				t.Errorf("more than one line: %s", errs)
			}
			if strings.Contains(errs, "level=error") || strings.Contains(errs, "hive") {
				t.Errorf("the error is there twice: %s", errs)
			}
		})
	}
}

func TestSettingsFromTheEnvironment(t *testing.T) {
	t.Parallel()
	cmd := agenttest.Program(t, "run", "--listen", "127.0.0.1:0")
	cmd.Env = append(cmd.Env, "MESH_AGENT_CLUSTER_NAME=a", "MESH_AGENT_CLUSTER_ID=many")
	out, _ := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != exit.Usage || !strings.Contains(string(out), `MESH_AGENT_CLUSTER_ID="many"`) {
		t.Errorf("exit %d, %s", cmd.ProcessState.ExitCode(), out)
	}
}

func TestTheObjectGraph(t *testing.T) {
	t.Parallel()
	out, errs, code := agenttest.Call(t, "hive")
	if code != exit.OK || !strings.Contains(out, "clustermesh") || !strings.Contains(out, "api") {
		t.Errorf("hive: exit %d\n%s%s", code, out, errs)
	}
}
