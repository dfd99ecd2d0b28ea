package agent_test

import (
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
	"github.com/mesh-agent/mesh-agent/simtest/clitest"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest"
)

// web is a global service with a backend.
const web = `apiVersion: v1
kind: Service
metadata:
  name: web
  namespace: shop
  annotations: {service.cilium.io/global: "true"}
spec:
  clusterIP: 172.20.0.1
  ports: [{name: http, port: 80, protocol: TCP}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: web-1
  namespace: shop
  labels: {kubernetes.io/service-name: web}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints:
- addresses: [10.9.0.1]
  conditions: {ready: true}
`

// TestAClusterOfItsOwn: one process operates the cluster, one mirrors another cluster, and a second mirror stands by.
// All of them answer requests as an agent does, and end without errors.
func TestAClusterOfItsOwn(t *testing.T) {
	t.Parallel()
	remote, etcd, manifests := meshtest.Run(t, meshtest.Clusters(1)...), etcdtest.Start(t), t.TempDir()
	agenttest.Must(t, os.WriteFile(filepath.Join(manifests, "web.yaml"), []byte(web), 0o600))
	own := []string{"--cluster-name", "own", "--cluster-id", "9", "--kvstore-opt", "etcd.address=" + etcd.Endpoint()}
	operates := agenttest.StartMode(t, config.ModeOperate, nil, append([]string{"--local-manifests", manifests}, own...)...)
	mirrors := agenttest.StartMode(t, config.ModeMirror, nil, append([]string{"--clustermesh-config", remote.Dir()}, own...)...)
	for _, a := range []*agenttest.Process{operates, mirrors} {
		if out, errs, code := a.Call("status", "--wait", "--timeout", "10m"); code != exit.OK || !strings.Contains(out, ": leading\n") {
			t.Fatalf("status --wait: exit %d\n%s%s", code, out, errs)
		}
	}
	standby := agenttest.StartMode(t, config.ModeMirror, nil, append([]string{"--clustermesh-config", remote.Dir()}, own...)...)
	standby.Until("a standby that is not ready before its time", func() bool {
		ready := get(t, standby, "/readyz")
		return strings.HasPrefix(ready, "503 ") && strings.Contains(ready, "another mirror leads")
	})

	wantStatus(t, operates, config.ModeOperate, true)
	if s := operates.Status(); s.Description == nil || s.Description.Objects["services"] != 1 || len(s.Clusters) != 0 ||
		!slices.ContainsFunc(s.KVStore.Written, func(w api.Written) bool { return w.Prefix == "cilium/state/services/v1/own/" && w.Entries == 1 }) {
		t.Errorf("%+v, %+v", s.Description, s.KVStore)
	}
	wantStatus(t, mirrors, config.ModeMirror, true)
	if s := mirrors.Status(); s.Description != nil || len(s.Clusters) != 1 || s.Summary.ClustersReady != 1 || !s.Clusters[0].Well() || s.Clusters[0].Counts.IPs == 0 {
		t.Errorf("%+v", s.Clusters)
	}
	wantStatus(t, standby, config.ModeMirror, false)
	if s := standby.Status(); len(s.Clusters) != 0 {
		t.Errorf("a standby has %+v", s.Clusters)
	}
	wantAnswers(t, operates, mirrors, standby)
	wantSeries(t, operates, mirrors, standby)
	for _, a := range []*agenttest.Process{operates, mirrors, standby} {
		wantReport(t, a)
		if code := a.Stop(); code != exit.OK {
			t.Errorf("SIGTERM: exit %d", code)
		}
	}
	resp, err := etcd.Client(t).Get(t.Context(), wire.Services.Key("own", false, "shop/web"))
	if err != nil || len(resp.Kvs) != 1 {
		t.Errorf("what was published is withdrawn with its process: %v, %v", resp, err)
	}
}

func wantStatus(t *testing.T, a *agenttest.Process, m config.Mode, leads bool) {
	t.Helper()
	s := a.Status()
	if s.Agent.Mode != string(m) || s.Agent.Leads == nil || *s.Agent.Leads != leads || s.Agent.Cluster != "own" || s.Agent.ClusterID != 9 {
		t.Errorf("%+v", s.Agent)
	}
	if k := s.KVStore; k == nil || !k.WriteOnly || !k.Connected || len(k.Endpoints) != 1 || k.Lease == "" {
		t.Errorf("%+v", k)
	}
}

// get returns the code and the body of an answer over the socket.
func get(t *testing.T, a *agenttest.Process, path string) string {
	t.Helper()
	resp, err := agenttest.UnixClient(a.Socket).Get("http://agent" + path)
	agenttest.Must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	agenttest.Must(t, err)
	return resp.Status[:4] + string(body)
}

// wantAnswers wants the usual answers of all paths, over TCP too.
func wantAnswers(t *testing.T, all ...*agenttest.Process) {
	t.Helper()
	tcp := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, a := range all {
		for _, path := range []string{"/healthz", "/v1/status", "/v1/clusters", "/v1/services", "/v1/health", "/metrics", "/openapi.json"} {
			if got := get(t, a, path); !strings.HasPrefix(got, "200 ") {
				t.Errorf("%s: %.300s", path, got)
			}
		}
		resp, err := tcp.Get("http://" + tcpAddress(a) + "/healthz")
		agenttest.Must(t, err)
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("over TCP: %s", resp.Status)
		}
	}
}

// series returns the metrics of a process whose names begin with this text, with their values.
func series(t *testing.T, a *agenttest.Process, begins string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for line := range strings.Lines(get(t, a, "/metrics")) {
		if i := strings.LastIndex(line, " "); strings.HasPrefix(line, begins) {
			all[line[:i]] = strings.TrimSpace(line[i:])
		}
	}
	return all
}

// wantSeries wants the series of wire.md §6.2: the leader, the time until the first copy was complete, and the progress
// of writing.
func wantSeries(t *testing.T, operates, mirrors, standby *agenttest.Process) {
	t.Helper()
	const master = "mesh_agent_leader_election_master_status"
	for a, want := range map[*agenttest.Process]map[string]string{
		operates: {master + `{name="operate"}`: "1"}, mirrors: {master + `{name="mirror"}`: "1"}, standby: {master + `{name="mirror"}`: "0"},
	} {
		if diff := cmp.Diff(want, series(t, a, master)); diff != "" {
			t.Error(diff)
		}
	}
	const operated, mirrored = "mesh_agent_operate_bootstrap_seconds", "mesh_agent_mirror_bootstrap_seconds"
	for name, a := range map[string]*agenttest.Process{operated: operates, mirrored: mirrors} {
		if took := series(t, a, name)[name]; took == "" || took == "0" {
			t.Errorf("%s is %q", name, took)
		}
	}
	if took := series(t, standby, mirrored)[mirrored]; took != "0" {
		t.Errorf("of a standby it is %q", took)
	}
	published := []string{`{scope="cilium/clust",source_cluster="own"}`}
	copied := slices.Clone(published)
	for _, scope := range []string{"services", "endpointslices", "serviceexports", "identities"} {
		published = append(published, `{scope="`+scope+`/v1",source_cluster="own"}`)
	}
	for _, r := range wire.Resources() {
		copied = append(copied, `{scope="`+wire.ScopeFromKey(r.Prefix("cluster1", true))+`",source_cluster="cluster1"}`)
	}
	for a, want := range map[*agenttest.Process][]string{operates: published, mirrors: copied, standby: nil} {
		slices.Sort(want)
		for family, value := range map[string]string{"sync_queue_size": "0", "sync_errors_total": "0", "initial_sync_completed": "1"} {
			wantWritten(t, a, "mesh_agent_kvstore_"+family, want, value)
		}
	}
}

// wantWritten wants one series of the family for each written resource.
func wantWritten(t *testing.T, a *agenttest.Process, family string, labels []string, value string) {
	t.Helper()
	var got []string
	for name, is := range series(t, a, family) {
		got = append(got, strings.Replace(strings.TrimPrefix(name, family), `action="write",`, "", 1))
		if is != value {
			t.Errorf("%s is %s", name, is)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(labels, got); diff != "" {
		t.Errorf("%s (-want +got): %s", family, diff)
	}
}

// wantReport wants a bug report that is complete.
func wantReport(t *testing.T, a *agenttest.Process) {
	t.Helper()
	out, errs, code := a.Call("bugreport", "-f", "-")
	files := clitest.Unpack(t, []byte(out))
	if code != exit.OK || errs != "" || files["errors.txt"] != "Everything was collected.\n" {
		t.Errorf("exit %d, %s%s", code, errs, files["errors.txt"])
	}
	for _, name := range []string{"status.txt", "status.json", "config.json", "metrics.txt", "goroutines.txt", "lists/health-001.json"} {
		if files[name] == "" {
			t.Errorf("no %s among %v", name, slices.Sorted(maps.Keys(files)))
		}
	}
	if strings.Contains(files["status.txt"], "nodes, ") {
		t.Errorf("it tells of nodes, which it does not look for: %s", files["status.txt"])
	}
}

// onNode is a node with a pod.
const onNode = `apiVersion: v1
kind: Node
metadata: {name: n1}
status: {addresses: [{type: InternalIP, address: 10.0.0.1}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web}}
spec: {nodeName: n1, containers: [{name: c, image: i}]}
status: {phase: Running, podIP: 10.9.0.1, podIPs: [{ip: 10.9.0.1}], hostIP: 10.0.0.1, hostIPs: [{ip: 10.0.0.1}]}
`

// TestMetricsOfIdentities: the counters of an agent's allocator and of an operator's garbage collection are among their
// metrics.
func TestMetricsOfIdentities(t *testing.T) {
	t.Parallel()
	etcd, manifests := etcdtest.Start(t), t.TempDir()
	agenttest.Must(t, os.WriteFile(filepath.Join(manifests, "node.yaml"), []byte(onNode), 0o600))
	etcd.Put(t, wire.IdentityAllocation.Mappings()+"none", "k8s:app=x;", wire.IdentityAllocation.References()+"none", "131072")
	own := []string{"--cluster-name", "own", "--cluster-id", "2", "--kvstore-opt", "etcd.address=" + etcd.Endpoint(), "--local-manifests", manifests}
	agent := agenttest.StartAgent(t, t.TempDir(), append([]string{"--node-name", "n1"}, own...)...)
	operator := agenttest.StartMode(t, config.ModeOperate, nil, own...)
	wants := func(a *agenttest.Process, name string, want string) {
		t.Helper()
		a.Until(name+" "+want, func() bool { return series(t, a, name)[name] == want })
	}
	wants(agent, `mesh_agent_allocator_allocations_total{outcome="new"}`, "1")
	wants(agent, `mesh_agent_allocator_malformed_total{kind="mapping"}`, "1")
	wants(operator, `mesh_agent_allocator_malformed_total{kind="mapping"}`, "1")
	wants(operator, `mesh_agent_allocator_malformed_total{kind="reference"}`, "1")
	for _, a := range []*agenttest.Process{agent, operator} {
		if code := a.Stop(); code != exit.OK {
			t.Errorf("exit %d", code)
		}
	}
}

// TestReadyKnowsTheOwnCluster: until the description of the own cluster has been read, the agent is not ready, and does
// not report that the own cluster lacks a service.
func TestReadyKnowsTheOwnCluster(t *testing.T) {
	t.Parallel()
	m := meshtest.Run(t, meshtest.Clusters(1)...)
	later := filepath.Join(t.TempDir(), "later")
	a := agenttest.StartMode(t, config.ModeRun, nil, "--cluster-name", "east", "--cluster-id", "9", "--clustermesh-config", m.Dir(), "--local-manifests", later)
	a.Until("cluster1 to be read", func() bool { return strings.Contains(get(t, a, "/v1/clusters"), `"ready"`) })
	if got := get(t, a, "/readyz"); !strings.HasPrefix(got, "503 ") || !strings.Contains(got, "its description was not read yet") {
		t.Errorf("without a description: %s", got)
	}
	if _, errs, _ := a.Call("describe", "service", "shop/cart"); !strings.Contains(errs, "may have it: its services: the description of this cluster was not read yet") {
		t.Errorf("nothing is known of the own cluster, and yet:\n%s", errs)
	}
	agenttest.Must(t, os.MkdirAll(later, 0o755))
	agenttest.Must(t, os.WriteFile(filepath.Join(later, "cart.yaml"), []byte(`
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: cart, annotations: {service.cilium.io/global: "true"}}
spec: {clusterIP: 10.96.0.7, ports: [{port: 80}]}
`), 0o600))
	a.Until("the agent to be ready", func() bool { return strings.HasPrefix(get(t, a, "/readyz"), "200 ") })
	if out, _, _ := a.Call("describe", "service", "shop/cart"); !strings.Contains(out, "the local service of east") {
		t.Errorf("it is ready, and does not know the service:\n%s", out)
	}
}
