package view

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/backends"
	"github.com/mesh-agent/mesh-agent/pkg/identities"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// TestObjectsPrintAsALine: users of the library print objects before anything else.
func TestObjectsPrintAsALine(t *testing.T) {
	t.Parallel()
	east := &ipcache.Claimant{Name: "east", ID: 1}
	entry := func(s ipcache.Spec) *ipcache.Entry {
		s.Prefix, s.Cluster, s.Identity = netip.MustParsePrefix("10.1.0.7/32"), east, 66536
		return ipcache.NewEntry(s)
	}
	ip := netip.MustParseAddr("10.1.0.7")
	http := services.Port{Name: "http", Protocol: "TCP", Port: 80}
	for want, object := range map[string]any{
		"10.1.0.7/32 of east: pod default/web-0, identity 66536": entry(ipcache.Spec{Kind: ipcache.KindHost, Namespace: "default", Name: "web-0"}),
		"10.1.0.7/32 of east: node of worker-1, identity 66536":  entry(ipcache.Spec{Kind: ipcache.KindNode, Name: "worker-1"}),
		"10.1.0.7/32 of east: endpoint, identity 66536":          entry(ipcache.Spec{Kind: ipcache.KindHost}),
		"default/web of east, Headless":                          &services.Export{Cluster: "east", Namespace: "default", Name: "web", Type: "Headless"},
		"10.1.0.7 of east":                                       backends.Backend{Cluster: "east", IP: ip},
		"10.1.0.7 of east (http 80/TCP, 53/UDP)":                 backends.Backend{Cluster: "east", IP: ip, Ports: []services.Port{http, {Protocol: "UDP", Port: 53}}},
		"worker-1 of east":                                       &nodes.Node{Cluster: "east", Name: "worker-1"},
		"worker-1 of east: 10.1.0.7, 10.1.0.7":                   &nodes.Node{Cluster: "east", Name: "worker-1", Addresses: []nodes.Address{{IP: ip}, {IP: ip}}},
		"66536 of east: k8s:app=web;":                            identities.FromWire(wire.Identity{ID: 66536, Labels: wire.Labels{{Source: "k8s", Key: "app", Value: "web"}}}, "east", 1),
		"unknown":                                                remotecluster.Freshness{State: remotecluster.FreshnessUnknown},
		"stale as of 2026-11-27T20:05:01Z":                       remotecluster.Freshness{State: remotecluster.FreshnessStale, AsOf: time.Date(2026, 11, 27, 20, 5, 1, 7, time.UTC)},
		"east: ready":                                            remotecluster.Status{Name: "east", State: remotecluster.Ready},
		"east: degraded, not connected":                          remotecluster.Status{Name: "east", State: remotecluster.Degraded, Message: "not connected"},
	} {
		if got := fmt.Sprint(object); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
