package main

import (
	"context"
	"io"
	"log/slog"
	"net/netip"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/cilium/statedb"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/internal/health"
	"github.com/mesh-agent/mesh-agent/internal/logging"
	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/findings"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/view"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// testMesh is a mesh that is as the test says.
type testMesh struct {
	mu       sync.Mutex
	clusters []remotecluster.Status
	local    *remotecluster.Status
	starting bool
}

func (m *testMesh) Clusters() []remotecluster.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clusters
}

func (m *testMesh) Local() (remotecluster.Status, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.local == nil {
		return remotecluster.Status{}, false
	}
	return *m.local, true
}

func (m *testMesh) Ready() (bool, map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.starting, map[string]string{}
}

func (m *testMesh) Announced() []remotecluster.Status { return nil }

func (m *testMesh) Find(string, wire.Resource, string) (store.Found, bool) {
	return store.Found{}, false
}

func (m *testMesh) Ignored() []clustermesh.Ignored { return nil }

func (m *testMesh) Revision() uint64 { return 1 }

func (m *testMesh) set(clusters ...remotecluster.Status) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clusters = clusters
}

// agent is a server over real tables, on real sockets.
type agent struct {
	mesh                    *testMesh
	nodes                   *nodes.Nodes
	address, socket, server string
	stop                    func()
}

// newAgent starts an agent that knows a little of everything.
func newAgent(t *testing.T, clusters ...remotecluster.Status) *agent {
	t.Helper()
	return (&testMesh{clusters: clusters}).serve(t)
}

// serve starts an agent of this mesh.
func (m *testMesh) serve(t *testing.T) *agent {
	t.Helper()
	a := &agent{mesh: m}
	sources := a.sources(t)
	s, err := api.NewServer(sources, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen("127.0.0.1:0", filepath.Join(t.TempDir(), "agent.sock"), false); err != nil {
		t.Fatal(err)
	}
	a.address, a.socket, a.server = s.Address(), s.Socket(), "http://"+s.Address()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	go func() { _ = sources.View.Run(ctx) }()
	a.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(a.stop)
	return a
}

func (a *agent) sources(t *testing.T) api.Sources {
	t.Helper()
	tables, err := view.NewTables(statedb.New(), ipcache.New())
	if err != nil {
		t.Fatal(err)
	}
	n, s, i, ips := tables.Nodes, tables.Services, tables.Identities, tables.IPs
	_, level, err := logging.New(io.Discard, "info", "text")
	if err != nil {
		t.Fatal(err)
	}
	a.nodes = n
	n.Apply([]store.Change[nodes.Node]{{New: &nodes.Node{
		Cluster: "c2", ClusterID: 2, Name: "n1", Source: wire.SourceClusterMesh, EncryptionKey: 3,
		Addresses: []nodes.Address{{Type: "ExternalIP", IP: addr("1.2.3.4")}, {Type: "InternalIP", IP: addr("192.168.2.1")}},
		PodCIDRs:  []netip.Prefix{netip.MustParsePrefix("10.2.1.0/24")},
	}}})
	s.Apply([]store.Change[services.Service]{{New: &services.Service{
		Cluster: "c2", Namespace: "default", Name: "web", Shared: true, Source: wire.SourceClusterMesh,
		Backends: []services.Backend{{IP: addr("10.2.1.10")}},
	}}})
	s.ApplyExports([]store.Change[services.Export]{
		{New: &services.Export{
			Cluster: "c2", Namespace: "default", Name: "web", Type: wire.ServiceExportClusterSetIP, Created: time.Unix(100, 0).UTC(),
			Affinity: wire.SessionAffinityClientIP, Timeout: services.DefaultAffinityTimeout, Ports: []services.Port{{Name: "http", Protocol: "TCP", Port: 80}},
		}},
		{New: &services.Export{
			Cluster: "c4", Namespace: "default", Name: "web", Type: wire.ServiceExportClusterSetIP, Created: time.Unix(200, 0).UTC(), Affinity: wire.SessionAffinityNone,
		}},
	})
	i.Apply([]store.Change[allocator.Identity]{{Name: "131072", New: &allocator.Identity{
		ID: 131072, Cluster: "c2", ClusterID: 2, Labels: allocator.NewLabels(wire.ParseLabels("k8s:app=web;k8s:tier=front;")),
	}}})
	c2, c3 := &ipcache.Cluster{Name: "c2", ID: 2}, &ipcache.Cluster{Name: "c3", ID: 3}
	host := func(c *ipcache.Cluster, identity uint32, name string) ipcache.Op {
		return ipcache.Op{New: ipcache.NewEntry(ipcache.Spec{
			Prefix: netip.MustParsePrefix("10.2.1.10/32"), Cluster: c, Source: wire.SourceClusterMesh, Identity: identity,
			HostIP: addr("192.168.2.1"), Namespace: "default", Name: name,
		})}
	}
	ips.Apply([]ipcache.Op{host(c2, 131072, "web-0"), host(c3, 196608, "other")})
	derived := tables.Derived()
	derived.Remotes, derived.Local, derived.Ignored = a.mesh, a.mesh, a.mesh.Ignored
	watch, err := findings.NewWatch(tables.Findings, derived)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watch.Close)
	watch.Look(time.Now())
	reg := health.New()
	reg.NewScope("clustermesh").OK("fine")
	sources := tables.Sources()
	sources.Remotes, sources.Own, sources.Readiness, sources.Scopes = a.mesh, a.mesh, a.mesh, reg
	seen, err := view.New(sources)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(seen.Close)
	return api.Sources{
		Agent: api.AgentInfo{Version: "v1.2.3", Cluster: "c1", ClusterID: 1, Node: "node-1", Started: time.Now().Add(-time.Hour), Mode: "run"},
		View:  seen, Directory: a.mesh, Keys: a.mesh, Gatherer: prometheus.NewRegistry(), LogLevel: level,
		Settings: api.Settings{"cluster-name": "c1"},
	}
}

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }

// well is a cluster with nothing wrong.
func well(name string, id uint32) remotecluster.Status {
	c := remotecluster.Status{
		Name: name, ID: id, State: remotecluster.Ready, Ready: true, Connected: true,
		ConnectedSince: time.Now().Add(-time.Minute), ConfigFile: "/mesh/" + name, Endpoints: []string{"https://" + name + ":2379"},
		Capabilities: &wire.Capabilities{SyncedCanaries: true, MaxConnectedClusters: 255},
		Sources:      make(map[wire.Resource]remotecluster.SourceStatus),
	}
	for _, r := range []wire.Resource{wire.Nodes, wire.Services, wire.Identities, wire.IPs, wire.EndpointSlices} {
		c.Sources[r] = remotecluster.SourceStatus{
			Synced: true, Count: 7, Freshness: remotecluster.Freshness{State: remotecluster.FreshnessSynced, AsOf: time.Now()},
		}
	}
	return c
}

// lost is a cluster whose connection was lost.
func lost(name string) remotecluster.Status {
	c := well(name, 9)
	c.State, c.Ready, c.Connected, c.Message = remotecluster.Degraded, false, false, "not connected: connection refused"
	c.Failures, c.LastFailure, c.LastError = 3, time.Now().Add(-time.Minute), "connection refused"
	for r, s := range c.Sources {
		s.Freshness = remotecluster.Freshness{State: remotecluster.FreshnessStale, AsOf: time.Now().Add(-3 * time.Minute)}
		c.Sources[r] = s
	}
	return c
}
