package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/internal/sim"
	"github.com/mesh-agent/mesh-agent/internal/waiting/waittest"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// program is a command line of the real program, in a process of its own.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), asAgent+"=1", "GORACE=exitcode=66")
	return cmd
}

// call runs a command line to its end.
func call(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := program(t, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	giveUp := time.AfterFunc(10*time.Minute, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) })
	_ = cmd.Run() // the code says it
	giveUp.Stop()
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// process is a running agent.
type process struct {
	t      *testing.T
	socket string
	cmd    *exec.Cmd
	log    *syncBuffer
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// startAgent runs the agent on a directory, until the end of the test.
func startAgent(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	return startProgram(t, dir, nil, args...)
}

// startProgram is startAgent with more variables in the environment.
func startProgram(t *testing.T, dir string, env []string, args ...string) *process {
	t.Helper()
	return startMode(t, modeRun, env, append([]string{"--clustermesh-config", dir}, args...)...)
}

// startMode runs the program in a mode, until the end of the test.
func startMode(t *testing.T, m mode, env []string, args ...string) *process {
	t.Helper()
	tmp, err := os.MkdirTemp("", "agent") // short: the path of a socket has a limit
	if err != nil {
		t.Fatal(err)
	}
	a := &process{t: t, socket: filepath.Join(tmp, "a.sock"), log: new(syncBuffer)}
	a.cmd = program(t, append([]string{string(m), "--listen", "127.0.0.1:0", "--socket", a.socket}, args...)...)
	a.cmd.Env = append(a.cmd.Env, env...)
	a.cmd.Stderr = a.log
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if a.cmd.ProcessState == nil {
			a.stop()
		}
		_ = os.RemoveAll(tmp)
		if t.Failed() {
			t.Logf("the agent's log:\n%s", a.log)
		}
	})
	a.until("the agent to answer", func() bool { _, _, code := a.call("get", "clusters"); return code == exitOK })
	return a
}

func (a *process) stop() (code int) {
	a.t.Helper()
	_ = a.cmd.Process.Signal(syscall.SIGTERM)
	_ = a.cmd.Wait()
	return a.cmd.ProcessState.ExitCode()
}

// call asks the agent with a command line, in this process: hundreds of processes
// with the race detector in them cost more than what they are about.
func (a *process) call(args ...string) (stdout, stderr string, code int) {
	a.t.Helper()
	asks := with(nil, "", "")
	asks.cli.poll = 50 * time.Millisecond
	r := asks.run(append(args, "--socket", a.socket)...)
	return r.out, r.err, r.code
}

// execute runs a command line of the real program against the agent.
func (a *process) execute(args ...string) (stdout, stderr string, code int) {
	a.t.Helper()
	return call(a.t, append(args, "--socket", a.socket)...)
}

// listening waits for the address of its TCP listener, which may open later than the socket.
func (a *process) listening() string {
	a.t.Helper()
	said := regexp.MustCompile(`msg=Listening address="([^"]*:\d+)"`)
	var found []string
	a.until("its TCP listener", func() bool { found = said.FindStringSubmatch(a.log.String()); return found != nil })
	return found[1]
}

// patiently is patient for what calls or executes.
func (a *process) patiently(run func(args ...string) (stdout, stderr string, code int), args ...string) (stdout, stderr string, code int) {
	a.t.Helper()
	got := patient(func(args ...string) result {
		out, errs, code := run(args...)
		return result{code, out, errs}
	}, args...)
	return got.out, got.err, got.code
}

func (a *process) until(what string, ok func() bool) {
	a.t.Helper()
	waittest.Until(a.t, what, ok, func() string {
		out, errs, _ := a.call("status")
		return out + errs
	})
}

// list gets a resource as JSON.
func list[T any](a *process, args ...string) []T {
	a.t.Helper()
	out, errs, code := a.call(append([]string{"get", "-o", "json"}, args...)...)
	var page struct{ Items []T }
	if err := json.Unmarshal([]byte(out), &page); err != nil || code != exitOK {
		a.t.Fatalf("get %v: exit %d, %v, %s", args, code, err, errs)
	}
	return page.Items
}

// simulate runs clusters in this process until the end of the test.
func simulate(t *testing.T, n int) *sim.Mesh {
	t.Helper()
	var clusters []sim.Cluster
	for i := range n {
		clusters = append(clusters, sim.Default(fmt.Sprint("cluster", i+1), uint32(i+1)))
	}
	return simulateAll(t, clusters)
}

// simulateAll runs these clusters until the end of the test.
func simulateAll(t *testing.T, clusters []sim.Cluster) *sim.Mesh {
	t.Helper()
	m, err := sim.OpenMesh(t.Context(), clusters, sim.MeshOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Load(t.Context(), func(*sim.Running, sim.Loaded) {}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// shown is what the agent shows of the clusters' contents: one line per key.
func (a *process) shown() map[string]string {
	a.t.Helper()
	got := map[string]string{}
	for _, n := range list[api.Node](a, "nodes") {
		got["node "+n.Cluster+"/"+n.Name] = fmt.Sprint(n.ClusterID, n.Addresses, n.PodCIDRs, n.Labels)
	}
	for _, id := range list[api.Identity](a, "identities") {
		got[fmt.Sprint("identity ", id.ID)] = fmt.Sprint(id.Cluster, id.Labels)
	}
	for _, ip := range list[api.IP](a, "ips") {
		if ip.Kind == "endpoint" {
			got["ip "+ip.Prefix] = fmt.Sprint(ip.Cluster, ip.Identity, ip.HostIP, ip.Namespace, ip.Pod)
		}
	}
	for _, s := range list[api.Service](a, "services") {
		for _, b := range s.Backends {
			got[fmt.Sprintf("backend %s/%s %s %s", s.Namespace, s.Name, b.Cluster, b.IP)] = portsText(len(b.Ports), func(i int) uint16 { return b.Ports[i].Port })
		}
	}
	return got
}

// expected brings the simulated contents into the same form.
func expected(t *testing.T, m *sim.Mesh) map[string]string {
	t.Helper()
	want := map[string]string{}
	for _, r := range m.Clusters() {
		name := r.Cluster().Name
		for key, value := range r.Contents() {
			kind := strings.Split(key, "/")
			switch {
			case len(kind) < 3 || kind[1] != "state":
			case kind[2] == "nodes":
				var n wire.Node
				decode(t, value, &n)
				var addrs []api.NodeAddress
				for _, a := range n.IPAddresses {
					addrs = append(addrs, api.NodeAddress{Type: a.Type, IP: a.IP.String()})
				}
				var cidrs []string
				for _, c := range append([]*wire.CIDR{n.IPv4AllocCIDR}, n.IPv6AllocCIDR) {
					if c != nil {
						p, _ := c.Prefix()
						cidrs = append(cidrs, p.String())
					}
				}
				want["node "+name+"/"+n.Name] = fmt.Sprint(n.ClusterID, addrs, cidrs, n.Labels)
			case kind[2] == "identities":
				want["identity "+kind[len(kind)-1]] = fmt.Sprint(name, wire.ParseLabels(value).Map())
			case kind[2] == "ip":
				var p wire.IPIdentityPair
				decode(t, value, &p)
				want["ip "+p.IP.String()+"/32"] = fmt.Sprint(name, p.Identity, p.HostIP.String(), p.Namespace, p.Pod)
			case kind[2] == "services":
				var s wire.Service
				decode(t, value, &s)
				for ip, ports := range s.Backends {
					all := slices.Collect(maps.Values(ports))
					want[fmt.Sprintf("backend %s/%s %s %s", s.Namespace, s.Name, name, ip)] = portsText(len(all), func(i int) uint16 { return all[i].Port })
				}
			}
		}
	}
	return want
}

// portsText lists the numbers of ports in their order.
func portsText(n int, port func(int) uint16) string {
	ports := make([]uint16, n)
	for i := range n {
		ports[i] = port(i)
	}
	slices.Sort(ports)
	return fmt.Sprint(ports)
}

func decode(t *testing.T, value string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(value), into); err != nil {
		t.Fatal(err)
	}
}

func TestTheWholeProgramOnSimulatedClusters(t *testing.T) {
	t.Parallel()
	m := simulate(t, 3)
	a := startAgent(t, m.Dir(), "--cluster-name", "own", "--cluster-id", "250")
	if out, errs, code := a.call("status", "--wait", "--for=fresh", "--timeout", "10m"); code != exitOK {
		t.Fatalf("status --wait: exit %d\n%s%s", code, out, errs)
	}
	if diff := cmp.Diff(expected(t, m), a.shown()); diff != "" {
		t.Fatalf("the view differs from the clusters (-want +got):\n%s", diff)
	}
	for _, r := range m.Clusters() {
		if _, err := r.Churn(t.Context(), 300); err != nil {
			t.Fatal(err)
		}
	}
	want := expected(t, m)
	a.until("the view to follow the churn", func() bool { return cmp.Equal(want, a.shown()) })

	sample := m.Clusters()[0].Sample()
	for address, says := range map[string]string{
		sample.Pod.String():  "is pod " + sample.PodName + " in cluster cluster1",
		sample.Node.String(): "is an address of node cluster1/",
	} {
		if out, errs, code := a.call("lookup", address); code != exitOK || !strings.Contains(out, says) {
			t.Errorf("lookup %s: exit %d, want %q in\n%s%s", address, code, says, out, errs)
		}
	}
	if out, _, code := a.call("lookup", "192.0.2.1"); code != exitUnwell || !strings.Contains(out, "192.0.2.1") {
		t.Errorf("lookup of an address nobody claims: exit %d, %q", code, out)
	}

	// One file goes: its cluster does, and nothing else.
	if err := os.Remove(filepath.Join(m.Dir(), "cluster3")); err != nil {
		t.Fatal(err)
	}
	for key, value := range want {
		if strings.Contains(value, "cluster3") || strings.Contains(key, "cluster3") {
			delete(want, key)
		}
	}
	a.until("cluster3 to be gone", func() bool { return len(list[api.Cluster](a, "clusters")) == 2 && cmp.Equal(want, a.shown()) })

	if code := a.stop(); code != exitOK {
		t.Errorf("SIGTERM: exit %d", code)
	}
	if _, err := os.Stat(a.socket); !os.IsNotExist(err) {
		t.Errorf("the socket is left behind: %v", err)
	}
	if _, _, code := a.call("status"); code != exitUsage {
		t.Errorf("status without an agent: exit %d", code)
	}
}

func TestABadFileHurtsNobodyElse(t *testing.T) {
	t.Parallel()
	m := simulate(t, 1)
	a := startAgent(t, m.Dir())
	a.until("cluster1 to be ready", func() bool { _, _, code := a.call("status"); return code == exitOK })
	bad := filepath.Join(m.Dir(), "broken")
	if err := os.WriteFile(bad, []byte("endpoints: [unterminated\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a.until("the broken file to be told", func() bool {
		out, _, code := a.call("status")
		return code == exitUnwell && strings.Contains(out, "broken") && strings.Contains(out, "failed")
	})
	if out, _, code := a.call("status", "cluster1"); code != exitOK {
		t.Errorf("cluster1 suffers: exit %d\n%s", code, out)
	}
	// Mended, it is tried again.
	good, err := os.ReadFile(filepath.Join(m.Dir(), "cluster1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(bad, good, 0o600); err != nil {
		t.Fatal(err)
	}
	a.until("the mended file to be tried", func() bool {
		out, _, _ := a.call("status", "broken")
		return strings.Contains(out, "cilium/cluster-config/broken")
	})
}

func TestADirectoryThatIsNotThere(t *testing.T) {
	t.Parallel()
	a := startAgent(t, filepath.Join(t.TempDir(), "later"))
	if out, _, code := a.call("status"); code != exitUnwell || !strings.Contains(out, "The mesh directory cannot be read") {
		t.Errorf("status: exit %d\n%s", code, out)
	}
	a.until("the warning", func() bool { return strings.Contains(a.log.String(), "does not exist") })
	c := unixClient(a.socket)
	for path, want := range map[string]string{"/healthz": "", "/readyz": "mesh directory", "/metrics": "mesh_agent_clustermesh_remote_clusters 0"} {
		resp, err := c.Get("http://agent" + path)
		if err != nil {
			t.Fatal(err)
		}
		var body bytes.Buffer
		_, _ = body.ReadFrom(resp.Body)
		resp.Body.Close()
		// Nothing is known of the clusters before their directory was read once.
		wantCode := http.StatusOK
		if path == "/readyz" {
			wantCode = http.StatusServiceUnavailable
		}
		if resp.StatusCode != wantCode || !strings.Contains(body.String(), want) {
			t.Errorf("%s: %d, %q not found", path, resp.StatusCode, want)
		}
	}
}

// unixClient asks over a socket.
func unixClient(socket string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
}

func TestBadInputEndsBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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
			_, errs, code := call(t, append([]string{"run", "--listen", "127.0.0.1:0", "--socket", filepath.Join(t.TempDir(), "s")}, c.args...)...)
			lines := strings.Split(strings.TrimSpace(errs), "\n")
			if last := lines[len(lines)-1]; code != exitUsage || !strings.HasPrefix(last, "Error: ") || !strings.Contains(last, c.want) {
				t.Errorf("exit %d, want %q in %s", code, c.want, errs)
			}
			if len(lines) != 1 && name != "an address in use" {
				t.Errorf("more than one line: %s", errs)
			}
		})
	}
}

func TestSettingsFromTheEnvironment(t *testing.T) {
	t.Parallel()
	cmd := program(t, "run", "--listen", "127.0.0.1:0")
	cmd.Env = append(cmd.Env, "MESH_AGENT_CLUSTER_NAME=a", "MESH_AGENT_CLUSTER_ID=many")
	out, _ := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != exitUsage || !strings.Contains(string(out), `MESH_AGENT_CLUSTER_ID="many"`) {
		t.Errorf("exit %d, %s", cmd.ProcessState.ExitCode(), out)
	}
}

func TestTheObjectGraph(t *testing.T) {
	t.Parallel()
	out, errs, code := call(t, "hive")
	if code != exitOK || !strings.Contains(out, "clustermesh") || !strings.Contains(out, "api") {
		t.Errorf("hive: exit %d\n%s%s", code, out, errs)
	}
}
