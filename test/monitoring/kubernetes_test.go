package monitoring

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/kubetest"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest"
	"github.com/mesh-agent/mesh-agent/simtest/programtest"
	"github.com/mesh-agent/mesh-agent/simtest/sim"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// kubernetesAlerts fire while the Kubernetes API refuses what an operator writes.
func kubernetesAlerts() []string {
	return []string{"MeshEndpointSlicesFailing", "MeshServiceImportsFailing"}
}

// whole is a mesh in which all parts are used: a cluster with agent, operator and mirror, and remote clusters.
type whole struct {
	t      *testing.T
	server *kubetest.Server
	way    *gate // between the operator and the API server
	mesh   *sim.Mesh
	prom   *prometheus
}

func newWhole(t *testing.T) *whole {
	t.Helper()
	programtest.Find(t, "consumers", "prometheus")
	needKubernetes(t)
	east, west := small("east", 1), small("west", 2)
	east.ServiceExports, west.ServiceExports = true, true
	w := &whole{t: t, server: kubetest.Start(t), mesh: meshtest.Run(t, east, west)}
	w.way = newGate(t, w.server.Addr())
	w.server.Apply(t, `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
`, `
apiVersion: v1
kind: Service
metadata: {namespace: default, name: moving, annotations: {service.cilium.io/global: "true", service.cilium.io/global-sync-endpoint-slices: "true"}}
spec: {selector: {app: moving}, ports: [{name: http, port: 80, protocol: TCP}]}
`)
	manifests, etcd, s := t.TempDir(), etcdtest.StartProcess(t), newServer(t)
	programtest.Write(t, manifests, "objects.yaml", onNode+webPod(1)+webService(1))
	var targets []target
	start := func(m config.Mode, api string, flags ...string) {
		agenttest.StartMode(t, m, nil, append([]string{
			"--cluster-name", "home", "--cluster-id", "9", "--kvstore-opt", "etcd.address=" + etcd.Endpoint(), "--listen", api, "--clustermesh-config", w.mesh.Dir(),
		}, flags...)...)
		targets = append(targets, target{"mesh-agent-" + string(m), api})
	}
	start(config.ModeRun, s.api, s.flags("--local-manifests", manifests, "--node-name", "n1")...)
	start(config.ModeMirror, programtest.Reserve(t))
	start(config.ModeOperate, programtest.Reserve(t), "--kubeconfig", w.server.Kubeconfig(t, w.way.Addr(), kubetest.Admin), "--endpoint-slices", "--mcs-api", "--install-crds")
	w.prom = startPrometheus(t, targets...)
	s.asks()
	again(t, time.Second, func(ctx context.Context) { s.follows(ctx, "") })
	number := 0
	again(t, 300*time.Millisecond, func(ctx context.Context) {
		number = number%200 + 1
		for _, r := range w.mesh.Clusters() {
			_ = move(ctx, r, number) // the test may be over
		}
	})
	return w
}

// move changes the backend of a service that the cluster shares and exports.
func move(ctx context.Context, r *sim.Running, n int) error {
	c := r.Cluster()
	ports := wire.Ports{"http": {Protocol: "TCP", Port: 8080}}
	s := wire.Service{
		Cluster: c.Name, ClusterID: c.ID, Namespace: "default", Name: "moving", Shared: true,
		Frontends: map[string]wire.Ports{"198.18.0.1": {"http": {Protocol: "TCP", Port: 80}}},
		Backends:  map[string]wire.Ports{fmt.Sprintf("10.%d.7.%d", c.ID, n): ports},
	}
	x := wire.ServiceExport{
		Cluster: c.Name, Namespace: "default", Name: "moving", Type: wire.ServiceExportClusterSetIP, SessionAffinity: wire.SessionAffinityNone,
		ExportCreationTimestamp: wire.ExportTime{Time: time.Unix(1_000_000+int64(c.ID), 0)},
		Ports:                   []wire.ServiceExportPort{{Name: "http", Protocol: "TCP", Port: int32(80 + n%3)}},
	}
	return errors.Join(r.Put(ctx, s.Key(), s.Encode()), r.Put(ctx, x.Key(), x.Encode()))
}

// TestKubernetes: no panel is empty in a mesh that is used, and then the Kubernetes API is unreachable.
func TestKubernetes(t *testing.T) {
	t.Parallel()
	w := newWhole(t)
	w.prom.scraped(3)
	_, err := w.mesh.Clusters()[0].Malform(t.Context(), "nodes") // for the panels of refused entries
	must(t, err)
	w.data("what is refused", "mesh_agent_clustermesh_remote_cluster_rejected_entries") // without it, panels have 0
	for _, file := range []string{"mesh", "cluster", "agent", "servers"} {
		w.panels(file)
	}
	w.metrics()
	_, err = w.mesh.Clusters()[0].Mend(t.Context())
	must(t, err)

	w.way.Shut()
	w.prom.fire(kubernetesAlerts()...)
	w.way.open()
	w.prom.resolve()
}

// panels wants data for every query of a dashboard, as Grafana sends them.
func (w *whole) panels(file string) {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "dashboards", file+".json"))
	must(w.t, err)
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	must(w.t, json.Unmarshal(text, &d))
	filled := strings.NewReplacer("$cluster", ".*", "$job", ".*", "$instance", ".*", "$target_cluster", ".*", "$__rate_interval", "10s")
	queries := 0
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			queries++
			w.data(fmt.Sprintf("the panel %q of %s", p.Title, file), filled.Replace(q.Expr))
		}
	}
	w.t.Logf("%s: %d queries have data", file, queries)
}

// data waits until Prometheus has data for a query.
func (w *whole) data(of, query string) {
	w.t.Helper()
	waittest.Try(w.t, "data in "+of+": "+query, func() error {
		all, err := w.prom.values(query)
		all = slices.DeleteFunc(all, func(v float64) bool { return v != v }) // NaN is no data
		if err == nil && len(all) == 0 {
			err = errors.New("none")
		}
		return err
	})
}

// metrics wants every metric in a rule or a dashboard to exist, and only few metrics of the agents to be unused.
func (w *whole) metrics() {
	w.t.Helper()
	var names []string
	must(w.t, w.prom.Get(`label/__name__/values`, &names))
	asked := make(map[string]string)
	name := regexp.MustCompile(`mesh_agent_\w+|process_\w+|go_\w+`)
	files, err := filepath.Glob(filepath.Join(folder, "dashboards", "*.json"))
	must(w.t, err)
	for _, file := range append(files, filepath.Join(folder, "rules.yaml")) {
		text, err := os.ReadFile(file)
		must(w.t, err)
		for line := range strings.Lines(string(text)) {
			if _, expression, is := strings.Cut(line, "expr"); is || strings.HasPrefix(line, "      ") && strings.HasSuffix(file, ".yaml") {
				for _, m := range name.FindAllString(expression+line, -1) {
					asked[m] = file
				}
			}
		}
	}
	if len(asked) < 40 {
		w.t.Errorf("only %d metrics were found: %q", len(asked), slices.Sorted(maps.Keys(asked)))
	}
	for _, m := range slices.Sorted(maps.Keys(asked)) {
		// Some exist only during a migration, or for listeners with TLS (TestListeners).
		if !slices.Contains(names, m) && m != "mesh_agent_allocator_doublewrite_failures_total" && !strings.HasPrefix(m, "mesh_agent_listener_") {
			w.t.Errorf("%s asks for %s, which nobody has", asked[m], m)
		}
	}
}
