package httpapi

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/mesh-agent/mesh-agent/internal/base/health"
	"github.com/mesh-agent/mesh-agent/internal/base/logging"
	"github.com/mesh-agent/mesh-agent/internal/diagnose/history"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/disconnect"
	"github.com/mesh-agent/mesh-agent/pkg/findings"
	"github.com/mesh-agent/mesh-agent/pkg/identities"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/view"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest/fakemesh"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest/viewtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// epoch is the present time of the tests' servers.
var epoch = time.Date(2026, 11, 21, 1, 2, 3, 0, time.UTC)

// fixture is a server over real tables and a fake mesh.
type fixture struct {
	*Server
	mesh       *fakemesh.Mesh
	nodes      *nodes.Nodes
	services   *services.Services
	identities *identities.Identities
	ips        *ipcache.Cache
	findings   *findings.Findings
	watch      *findings.Watch
	scopes     *health.Registry
	registry   *prometheus.Registry
}

func newFixture(t testing.TB, options ...Option) *fixture {
	t.Helper()
	return newFixtureOf(t, view.RingSize, options...)
}

// newFixtureOf returns a fixture whose view keeps this many changes.
func newFixtureOf(t testing.TB, ring uint64, options ...Option) *fixture {
	t.Helper()
	f := new(fixture)
	w := viewtest.NewWith(t, viewtest.Options{Ring: ring, Now: func() time.Time { return f.now() }})
	*f = fixture{
		mesh: w.Mesh, watch: w.Findings, scopes: w.Scopes, registry: prometheus.NewPedanticRegistry(),
		nodes: w.Tables.Nodes, services: w.Tables.Services, identities: w.Tables.Identities, ips: w.Tables.IPs, findings: w.Tables.Findings,
	}
	f.mesh.Is.Ignored = []clustermesh.Ignored{{File: "/mesh/Bad_Name", Reason: "the file's name is no valid cluster name"}}
	var err error
	f.Server, err = NewServer(Params{
		Agent: api.AgentInfo{Version: "v1.2.3", Cluster: "c1", ClusterID: 1, Node: "node-1", Started: epoch.Add(-time.Hour), Mode: "run"},
		View:  w.View, Missing: f.mesh.Missing, Gatherer: f.registry,
		LogLevel: logLevel(t), Settings: api.Settings{"cluster-name": "c1"}, History: history.New(f.mesh.Clusters),
	}, slog.New(slog.DiscardHandler), options...)
	must(t, err)
	t.Cleanup(f.Close)
	f.configKey = "key" // for golden files
	f.now = func() time.Time { return epoch }
	return f
}

// Close ends everything.
func (f *fixture) Close() {
	f.Server.Close()
	f.View.Close()
}

// logLevel is the level of a log that is discarded.
func logLevel(t testing.TB) *logging.Level {
	t.Helper()
	_, level, err := logging.New(io.Discard, "info", "text")
	must(t, err)
	return level
}

var must = waittest.Must

// get asks the handler.
func (f *fixture) get(target string) *httptest.ResponseRecorder {
	return f.do(http.MethodGet, target)
}

func (f *fixture) do(method, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	f.Handler().ServeHTTP(w, request(method, target))
	return w
}

// request is one that a client on this machine sends.
func request(method, target string) *http.Request {
	r := httptest.NewRequest(method, target, nil)
	r.Host = "localhost"
	return r
}

// object asks for an object and decodes it.
func object[T any](t testing.TB, f *fixture, target string) (v T) {
	t.Helper()
	w := f.get(target)
	if err := json.Unmarshal(w.Body.Bytes(), &v); w.Code != http.StatusOK || err != nil {
		t.Fatalf("%s: %d %v: %.300s", target, w.Code, err, w.Body)
	}
	return v
}

// list asks for a list.
func list[T any](t testing.TB, f *fixture, target string) api.List[T] {
	t.Helper()
	return object[api.List[T]](t, f, target)
}

func created[T any](objects ...*T) []store.Change[T] {
	changes := make([]store.Change[T], len(objects))
	for i, o := range objects {
		changes[i] = store.Change[T]{Name: fmt.Sprint(i), New: o}
	}
	return changes
}

func claimed(specs ...ipcache.Spec) []ipcache.Op {
	ops := make([]ipcache.Op, len(specs))
	for i, s := range specs {
		ops[i] = ipcache.Op{New: ipcache.NewEntry(s)}
	}
	return ops
}

func readyCluster(name string, id uint32) remotecluster.Status {
	c := remotecluster.Status{
		Name: name, ID: id, State: remotecluster.Ready, Ready: true, Connected: true,
		Endpoints: []string{"https://" + name + ":2379"}, EtcdClusterID: "cdf818194e3a8c32", ConfigFile: "/mesh/" + name, ConfigHash: "6d657368",
		Capabilities: &wire.Capabilities{SyncedCanaries: true, MaxConnectedClusters: 255},
		Families:     make(map[wire.Resource]remotecluster.FamilyStatus),
		Failures:     1, LastFailure: epoch.Add(-time.Minute), LastError: "connection refused",
		ConnectedSince: epoch.Add(-30 * time.Second), LastEvent: epoch.Add(-2 * time.Second), LastSuccess: epoch.Add(-time.Second),
		Forecast: &disconnect.Forecast{
			Since: epoch.Add(-time.Hour), Doubtful: true, Why: "its etcd answers, but its heartbeat has been missing since 2026-11-21T00:56:03Z",
			Next: disconnect.Demote, NextAt: epoch.Add(4 * time.Minute), Failing: 1, Judged: 1,
			Evidence: disconnect.Evidence{AsOf: epoch.Add(-400 * time.Millisecond), Heartbeat: epoch.Add(-6 * time.Minute), Connected: epoch.Add(-30 * time.Second)},
		},
	}
	for i, r := range []wire.Resource{wire.Nodes, wire.Services, wire.Identities, wire.IPs, wire.EndpointSlices, wire.ServiceExports} {
		c.Families[r] = remotecluster.FamilyStatus{
			Synced: true, Count: 10 * (i + 1), Rejected: i % 4,
			Freshness: remotecluster.Freshness{State: remotecluster.FreshnessSynced, AsOf: epoch.Add(-400 * time.Millisecond)},
		}
	}
	return c
}

func connectingCluster(name string) remotecluster.Status {
	return remotecluster.Status{
		Name: name, State: remotecluster.Connecting, Message: "connection refused", ConfigFile: "/mesh/" + name,
		Endpoints: []string{"https://" + name + ":2379"},
		Failures:  3, ConsecFailures: 3, LastFailure: epoch.Add(-time.Second), LastError: "connection refused",
	}
}

// fill puts a little of everything into the tables.
func (f *fixture) fill() {
	f.mesh.SetClusters(readyCluster("c2", 2), connectingCluster("c3"))
	f.nodes.Apply(created(
		&nodes.Node{
			Cluster: "c2", ClusterID: 2, Name: "n1", Source: wire.SourceClusterMesh,
			Addresses: []nodes.Address{{Type: "InternalIP", IP: ip("192.168.2.1")}, {Type: "CiliumInternalIP", IP: ip("10.2.1.1")}},
			PodCIDRs:  []netip.Prefix{prefix("10.2.1.0/24")}, HealthIPs: []netip.Addr{ip("10.2.1.2")}, IngressIPs: []netip.Addr{ip("10.2.1.3")},
			EncryptionKey: 3, WireguardPublicKey: "d2c=", BootID: "b-1",
			Labels: map[string]string{"zone": "a"}, Annotations: map[string]string{"note": "x < y"},
		},
		&nodes.Node{Cluster: "c2", ClusterID: 2, Name: "n2", Source: wire.SourceClusterMesh},
		&nodes.Node{Cluster: "c3", ClusterID: 3, Name: "n1", Source: wire.SourceClusterMesh, Addresses: []nodes.Address{{Type: "InternalIP", IP: ip("192.168.2.1")}}},
	))
	f.services.Apply(created(
		&services.Service{
			Cluster: "c2", ClusterID: 2, Namespace: "default", Name: "web", Shared: true, IncludeExternal: true, Source: wire.SourceClusterMesh,
			Backends: []services.Backend{
				{IP: ip("10.2.1.10"), Ports: []services.Port{{Name: "http", Protocol: "TCP", Port: 80}}, Hostname: "web-0", Zone: "a"},
				{IP: ip("10.2.1.11")},
			},
		},
		&services.Service{Cluster: "c3", ClusterID: 3, Namespace: "default", Name: "web", Shared: false, Source: wire.SourceClusterMesh, Backends: []services.Backend{{IP: ip("10.3.1.10")}}},
		&services.Service{Cluster: "c3", ClusterID: 3, Namespace: "db", Name: "empty", Shared: true, Source: wire.SourceClusterMesh},
		&services.Service{
			Cluster: "c1", ClusterID: 1, Namespace: "db", Name: "own", Affinity: wire.AffinityLocal, Source: wire.SourceKubernetes,
			Backends: []services.Backend{{IP: ip("10.1.1.10")}},
		},
	))
	f.services.ApplyExports(created(
		&services.Export{
			Cluster: "c2", Namespace: "default", Name: "web", Type: wire.ServiceExportClusterSetIP,
			Affinity: wire.SessionAffinityClientIP, Timeout: services.DefaultAffinityTimeout, Created: epoch.Add(-time.Hour).Truncate(time.Second),
			Ports: []services.Port{{Name: "http", Protocol: "TCP", Port: 80}},
		},
		&services.Export{Cluster: "c3", Namespace: "db", Name: "own", Type: wire.ServiceExportHeadless, Affinity: wire.SessionAffinityNone, Created: epoch.Truncate(time.Second)},
	))
	f.identities.Apply(created(
		&identities.Identity{ID: 131072, ClusterID: 2, Cluster: "c2", Labels: identities.NewLabels(wire.ParseLabels("k8s:app=web;k8s:io.kubernetes.pod.namespace=default;"))},
		&identities.Identity{ID: 196608, ClusterID: 3, Cluster: "c3"},
	))
	c2, c3 := &ipcache.Claimant{Name: "c2", ID: 2}, &ipcache.Claimant{Name: "c3", ID: 3}
	f.ips.Apply(claimed(
		ipcache.Spec{Prefix: prefix("10.2.1.10/32"), Cluster: c2, Kind: ipcache.KindHost, Source: wire.SourceClusterMesh, Identity: 131072, EncryptionKey: 3, HostIP: ip("192.168.2.1"), Namespace: "default", Name: "web-0"},
		ipcache.Spec{Prefix: prefix("10.2.1.10/32"), Cluster: c2, Kind: ipcache.KindCIDR, Source: wire.SourceClusterMesh, Identity: 131072},
		ipcache.Spec{Prefix: prefix("10.2.1.10/32"), Cluster: c3, Kind: ipcache.KindHost, Source: wire.SourceClusterMesh, Identity: 196608},
		ipcache.Spec{Prefix: prefix("10.2.1.10/32"), Cluster: c3, Kind: ipcache.KindCIDR, Source: wire.SourceGenerated, Identity: 2},
		ipcache.Spec{Prefix: prefix("10.2.1.0/24"), Cluster: c2, Kind: ipcache.KindPodCIDR, Source: wire.SourceClusterMesh, Identity: 2, HostIP: ip("192.168.2.1"), EncryptionKey: 3, Name: "n1"},
		ipcache.Spec{Prefix: prefix("10.2.1.0/24"), Cluster: c2, Kind: ipcache.KindPodCIDR, Source: wire.SourceClusterMesh, Identity: 2, Name: "n2"},
		ipcache.Spec{Prefix: prefix("192.168.2.1/32"), Cluster: c2, Kind: ipcache.KindNode, Source: wire.SourceClusterMesh, Identity: 6, Name: "n1"},
		ipcache.Spec{Prefix: prefix("10.2.1.2/32"), Cluster: c2, Kind: ipcache.KindHealth, Source: wire.SourceClusterMesh, Identity: 4, HostIP: ip("192.168.2.1"), Name: "n1"},
		ipcache.Spec{Prefix: prefix("10.2.1.3/32"), Cluster: c2, Kind: ipcache.KindIngress, Source: wire.SourceClusterMesh, Identity: 8, HostIP: ip("192.168.2.1"), Name: "n1"},
		ipcache.Spec{Prefix: prefix("fd00::1/128"), Cluster: c3, Kind: ipcache.KindHost, Source: wire.SourceClusterMesh, Identity: 424242, HostIP: ip("fd00::ff")},
	))
	f.scopes.NewScope("clustermesh").NewScope("job-mesh").OK("watching")
	f.watch.Look(epoch)
}

func ip(text string) netip.Addr       { return netip.MustParseAddr(text) }
func prefix(text string) netip.Prefix { return netip.MustParsePrefix(text) }
