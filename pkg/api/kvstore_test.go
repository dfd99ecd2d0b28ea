package api

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/meshtest/fakemesh"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

func TestTheLocalKVStoreInTheStatus(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.fill()
	status := func() Status { return object[Status](t, f, "/v1/status") }
	f.mesh.SetClusters(readyCluster("c2", 2))
	if s := status(); s.KVStore != nil || s.State != StateReady {
		t.Errorf("without one: %s, %+v", s.State, s.KVStore)
	}
	own := readyCluster("c1", 1)
	own.Heartbeat.Age = 7 * time.Second
	f.mesh.Set(func(is *fakemesh.Facts) { is.Own = &own })
	s := status()
	if k := s.KVStore; k == nil || !k.Connected || *k.HeartbeatAgeSeconds != 7 || k.Counts.IPs != 40 || k.Counts.EndpointSlices != 50 || k.LastError != "connection refused" || k.Lease != "" {
		t.Errorf("kvstore %+v", s.KVStore)
	}
	if s.State != StateReady || s.Summary.Clusters != 1 || len(s.Clusters) != 1 {
		t.Errorf("%s, %+v", s.State, s.Summary)
	}
	lost := own
	lost.State, lost.Ready, lost.Connected, lost.Message = remotecluster.Degraded, false, false, "not connected"
	lost.Sources = maps.Clone(own.Sources)
	stale := remotecluster.Freshness{State: remotecluster.FreshnessStale, AsOf: epoch.Add(-time.Hour)}
	lost.Sources[wire.IPs] = remotecluster.SourceStatus{Synced: true, Freshness: stale}
	f.mesh.Set(func(is *fakemesh.Facts) { is.Own = &lost })
	if s = status(); s.State != StateDegraded || s.KVStore.HeartbeatAgeSeconds != nil || s.KVStore.Message != "not connected" {
		t.Errorf("lost: %s, %+v", s.State, s.KVStore)
	}
	// What is the own cluster's is as old as its copy.
	f.ips.Apply(claimed(ipcache.Spec{
		Prefix: prefix("10.1.1.10/32"), Cluster: &ipcache.Cluster{Name: "c1", ID: 1}, Kind: ipcache.KindHost, Source: wire.SourceKVStore,
	}))
	l := object[Lookup](t, f, "/v1/lookup/10.1.1.10")
	if l.Freshness == nil || l.Freshness.State != "stale" || *l.Freshness.AgeSeconds != 3600 || !slices.Contains(l.Unconfirmed, "c1") {
		t.Errorf("lookup: freshness %+v, unconfirmed %v", l.Freshness, l.Unconfirmed)
	}
	if h := list[Health](t, f, "/v1/health?cluster=c1"); len(h.Items) != 1 || h.Items[0].Name != "local-kvstore" || h.Items[0].State != "degraded" {
		t.Errorf("health %+v", h.Items)
	}
}
