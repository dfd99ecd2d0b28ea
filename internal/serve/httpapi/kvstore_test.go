package httpapi

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/disconnect"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest/fakemesh"
)

func TestTheLocalKVStoreInTheStatus(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.fill()
	status := func() api.Status { return object[api.Status](t, f, "/v1/status") }
	f.mesh.SetClusters(readyCluster("c2", 2))
	if s := status(); s.KVStore != nil || s.State != api.StateReady {
		t.Errorf("without one: %s, %+v", s.State, s.KVStore)
	}
	own := readyCluster("c1", 1)
	own.Heartbeat.Age = 7 * time.Second
	f.mesh.Set(func(is *fakemesh.Facts) { is.Own = &own })
	s := status()
	if k := s.KVStore; k == nil || !k.Connected || *k.HeartbeatAgeSeconds != 7 || k.Counts.IPs != 40 || k.Counts.EndpointSlices != 50 || k.LastError != "connection refused" || k.Lease != "" {
		t.Errorf("kvstore %+v", s.KVStore)
	}
	if s.State != api.StateReady || s.Summary.Clusters != 1 || len(s.Clusters) != 1 {
		t.Errorf("%s, %+v", s.State, s.Summary)
	}
	full := own
	full.NoSpace = true
	f.mesh.Set(func(is *fakemesh.Facts) { is.Own = &full })
	if s = status(); s.State != api.StateDegraded || s.KVStore.Code != string(codes.EtcdAlarm) || s.OwnCluster.Trouble == nil || s.OwnCluster.Code != s.KVStore.Code {
		t.Errorf("without space: %s, %+v", s.State, s.KVStore)
	}
	lost := own
	lost.State, lost.Ready, lost.Connected, lost.Message = remotecluster.Degraded, false, false, "not connected"
	lost.Families = maps.Clone(own.Families)
	stale := remotecluster.Freshness{State: remotecluster.FreshnessStale, AsOf: epoch.Add(-time.Hour)}
	lost.Families[wire.IPs] = remotecluster.FamilyStatus{Synced: true, Freshness: stale}
	f.mesh.Set(func(is *fakemesh.Facts) { is.Own = &lost })
	if s = status(); s.State != api.StateDegraded || s.KVStore.HeartbeatAgeSeconds != nil || s.KVStore.Message != "not connected" {
		t.Errorf("lost: %s, %+v", s.State, s.KVStore)
	}
	// The entries of the own cluster are as old as its copy.
	f.ips.Apply(claimed(ipcache.Spec{
		Prefix: prefix("10.1.1.10/32"), Cluster: &ipcache.Claimant{Name: "c1", ID: 1}, Kind: ipcache.KindHost, Source: wire.SourceKVStore,
	}))
	l := object[api.Lookup](t, f, "/v1/lookup/10.1.1.10")
	if l.Freshness == nil || l.Freshness.State != "stale" || *l.Freshness.AgeSeconds != 3600 || !slices.Contains(l.Unconfirmed, "c1") {
		t.Errorf("lookup: freshness %+v, unconfirmed %v", l.Freshness, l.Unconfirmed)
	}
	if h := list[api.Health](t, f, "/v1/health?cluster=c1"); len(h.Items) != 1 || h.Items[0].Name != "local-kvstore" || h.Items[0].State != "degraded" {
		t.Errorf("health %+v", h.Items)
	}
}

// ownCluster is a description in one state.
type ownCluster struct{ state local.State }

func (o *ownCluster) State() local.State     { return o.state }
func (o *ownCluster) Counts() map[string]int { return map[string]int{"services": 3} }

// writer is a session with the own kvstore in one state.
type writer struct{ status kvstore.Status }

func (w writer) Status() kvstore.Status { return w.status }

// TestTheStatusOfWhoPublishes: the status has the described objects, the written keys, and the errors of both.
func TestTheStatusOfWhoPublishes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	status := func() api.Status { return object[api.Status](t, f, "/v1/status") }
	if s := status(); s.Description != nil || s.Agent.Leads != nil {
		t.Errorf("of an agent alone: %+v, %v", s.Description, s.Agent.Leads)
	}
	d := &ownCluster{local.State{Listed: true, AsOf: epoch}}
	written := []syncstore.Written{{Prefix: "cilium/state/services/v1/c1/", Cluster: "c1", Status: syncstore.Status{Wanted: 5, Pending: 2}}}
	f.Described, f.DescribedBy = d, "/manifests"
	f.Leads = func() bool { return true }
	f.Writer = writer{kvstore.Status{Connected: true, Endpoint: "https://own:2379"}}
	f.Written = func() []syncstore.Written { return written }
	s := status()
	if diff := cmp.Diff(&api.Description{Source: "/manifests", Listed: true, AsOf: timeOrNull(epoch), Objects: map[string]int{"services": 3}, Refused: []string{}}, s.Description); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]api.Written{{Prefix: "cilium/state/services/v1/c1/", Cluster: "c1", Entries: 5, Pending: 2}}, s.KVStore.Written); diff != "" {
		t.Error(diff)
	}
	if s.State != api.StateReady || s.Agent.Leads == nil || !*s.Agent.Leads || !s.KVStore.WriteOnly {
		t.Errorf("%s, %v, %+v", s.State, s.Agent.Leads, s.KVStore)
	}
	d.state.Refused = []string{"a.yaml: it is not valid YAML"}
	if s = status(); s.State != api.StateReady || len(s.Description.Refused) != 1 {
		t.Errorf("one bad file is %s, %+v", s.State, s.Description)
	}
	d.state = local.State{Listed: true, AsOf: epoch.Add(-time.Minute), Err: errors.New("the directory is gone")}
	if s = status(); s.State != api.StateDegraded || s.Description.Error != "the directory is gone" {
		t.Errorf("without a source it is %s, %+v", s.State, s.Description)
	}
	d.state.Err = nil
	written[0].Failed, written[0].Err = 1, "permission denied"
	if s = status(); s.State != api.StateDegraded || s.KVStore.Written[0].Refused != 1 || s.KVStore.Written[0].LastError != "permission denied" {
		t.Errorf("with a refused write it is %s, %+v", s.State, s.KVStore.Written)
	}
	written[0].Failed, written[0].Err = 0, ""
	f.Writer = writer{kvstore.Status{Connected: true, Server: kvstore.ServerStatus{Alarms: []string{"memberID:1 alarm:NOSPACE"}}}}
	if s = status(); s.State != api.StateDegraded || s.KVStore.State != api.StateDegraded || s.KVStore.Code != string(codes.EtcdAlarm) {
		t.Errorf("with an alarm it is %s, %+v", s.State, s.KVStore)
	}
	f.Writer = writer{kvstore.Status{Connected: true, Endpoint: "https://own:2379"}}
	var code codes.Code
	f.Stopped = func() (codes.Code, string) { return code, "nearly full" }
	if s = status(); s.State != api.StateReady {
		t.Errorf("with space it is %s, %+v", s.State, s.KVStore)
	}
	code = codes.OwnEtcdFull
	if s = status(); s.State != api.StateDegraded || s.KVStore.State != api.StateDegraded || s.KVStore.Message != "nearly full" || s.KVStore.Code != string(code) {
		t.Errorf("without space it is %s, %+v", s.State, s.KVStore)
	}
}

func TestThePolicyOfACluster(t *testing.T) {
	t.Parallel()
	if toPolicy(nil) != nil {
		t.Error("a policy where there is none")
	}
	for state, want := range map[disconnect.State][2]string{
		disconnect.Keep: {api.PolicyKeep, ""}, disconnect.Demote: {api.PolicyDemote, "MESH-1018"}, disconnect.Withdraw: {api.PolicyWithdraw, "MESH-1019"},
	} {
		p := toPolicy(&disconnect.Forecast{State: state})
		if p.State != want[0] || p.Code != want[1] || p.Next != "" || p.NextAt != nil || p.Held != nil || p.Evidence.Confirmed != nil {
			t.Errorf("%s: %+v", state, p)
		}
	}
	p := toPolicy(&disconnect.Forecast{Next: disconnect.Withdraw, NextAt: epoch, Held: epoch.Add(time.Second)})
	if p.Next != api.PolicyWithdraw || !p.NextAt.Equal(epoch) || !p.Held.Equal(epoch.Add(time.Second)) {
		t.Errorf("%+v", p)
	}
}
