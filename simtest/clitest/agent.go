package clitest

import (
	"context"
	"io"
	"log/slog"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/internal/base/logging"
	"github.com/mesh-agent/mesh-agent/internal/serve/httpapi"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/identities"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest/fakemesh"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest/viewtest"
)

// Agent is a server over real tables, on real sockets.
type Agent struct {
	Mesh                    *fakemesh.Mesh
	Nodes                   *nodes.Nodes
	Address, Socket, Server string
}

// NewAgent starts an agent with a few objects of each kind.
func NewAgent(t *testing.T, clusters ...remotecluster.Status) *Agent {
	t.Helper()
	return Serve(t, fakemesh.Facts{Clusters: clusters})
}

// Serve starts an agent of a mesh with this state.
func Serve(t *testing.T, is fakemesh.Facts) *Agent {
	t.Helper()
	return ServeWith(t, is, api.Settings{"cluster-name": "c1"})
}

// ServeWith starts an agent with these settings.
func ServeWith(t *testing.T, is fakemesh.Facts, settings api.Settings) *Agent {
	t.Helper()
	a := &Agent{Mesh: &fakemesh.Mesh{Is: is}}
	params := a.Params(t)
	params.Settings = settings
	s, err := httpapi.NewServer(params, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen("127.0.0.1:0", filepath.Join(t.TempDir(), "agent.sock"), false); err != nil {
		t.Fatal(err)
	}
	a.Address, a.Socket, a.Server = s.Address(), s.Socket(), "http://"+s.Address()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	go func() { _ = params.View.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return a
}

// Params returns what the agent serves.
func (a *Agent) Params(t *testing.T) httpapi.Params {
	t.Helper()
	world := viewtest.NewWith(t, viewtest.Options{Now: time.Now})
	world.Mesh.Is, a.Mesh = a.Mesh.Is, world.Mesh
	tables := world.Tables
	n, s, i, ips := tables.Nodes, tables.Services, tables.Identities, tables.IPs
	_, level, err := logging.New(io.Discard, "info", "text")
	if err != nil {
		t.Fatal(err)
	}
	a.Nodes = n
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
	i.Apply([]store.Change[identities.Identity]{{Name: "131072", New: &identities.Identity{
		ID: 131072, Cluster: "c2", ClusterID: 2, Labels: identities.NewLabels(wire.ParseLabels("k8s:app=web;k8s:tier=front;")),
	}}})
	c2, c3 := &ipcache.Claimant{Name: "c2", ID: 2}, &ipcache.Claimant{Name: "c3", ID: 3}
	host := func(c *ipcache.Claimant, identity uint32, name string) ipcache.Op {
		return ipcache.Op{New: ipcache.NewEntry(ipcache.Spec{
			Prefix: netip.MustParsePrefix("10.2.1.10/32"), Cluster: c, Source: wire.SourceClusterMesh, Identity: identity,
			HostIP: addr("192.168.2.1"), Namespace: "default", Name: name,
		})}
	}
	ips.Apply([]ipcache.Op{host(c2, 131072, "web-0"), host(c3, 196608, "other")})
	world.Findings.Look(time.Now())
	world.Scopes.NewScope("clustermesh").OK("fine")
	return httpapi.Params{
		Agent: api.AgentInfo{Version: "v1.2.3", Cluster: "c1", ClusterID: 1, Node: "node-1", Started: time.Now().Add(-time.Hour), Mode: "run"},
		View:  world.View, Gatherer: prometheus.NewRegistry(), LogLevel: level,
		Settings: api.Settings{"cluster-name": "c1"},
	}
}

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }

// Well is a cluster with nothing wrong.
func Well(name string, id uint32) remotecluster.Status {
	c := remotecluster.Status{
		Name: name, ID: id, State: remotecluster.Ready, Ready: true, Connected: true,
		ConnectedSince: time.Now().Add(-time.Minute), ConfigFile: "/mesh/" + name, Endpoints: []string{"https://" + name + ":2379"},
		Capabilities: &wire.Capabilities{SyncedCanaries: true, MaxConnectedClusters: 255},
		Families:     make(map[wire.Resource]remotecluster.FamilyStatus),
	}
	for _, r := range []wire.Resource{wire.Nodes, wire.Services, wire.Identities, wire.IPs, wire.EndpointSlices} {
		c.Families[r] = remotecluster.FamilyStatus{
			Synced: true, Count: 7, Freshness: remotecluster.Freshness{State: remotecluster.FreshnessSynced, AsOf: time.Now()},
		}
	}
	return c
}

// Lost is a cluster whose connection was lost.
func Lost(name string) remotecluster.Status {
	c := Well(name, 9)
	c.State, c.Ready, c.Connected, c.Message = remotecluster.Degraded, false, false, "not connected: connection refused"
	c.Failures, c.LastFailure, c.LastError = 3, time.Now().Add(-time.Minute), "connection refused"
	for r, s := range c.Families {
		s.Freshness = remotecluster.Freshness{State: remotecluster.FreshnessStale, AsOf: time.Now().Add(-3 * time.Minute)}
		c.Families[r] = s
	}
	return c
}
