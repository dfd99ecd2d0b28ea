package api

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
)

// ownCluster is a description in one state.
type ownCluster struct{ state local.State }

func (o *ownCluster) State() local.State     { return o.state }
func (o *ownCluster) Counts() map[string]int { return map[string]int{"services": 3} }

// writer is a session with the own kvstore in one state.
type writer struct{ status kvstore.Status }

func (w writer) Status() kvstore.Status { return w.status }

// TestTheStatusOfWhoPublishes: what is described, what is written, and what is
// wrong with either.
func TestTheStatusOfWhoPublishes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	status := func() Status { return object[Status](t, f, "/v1/status") }
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
	if diff := cmp.Diff(&Description{Source: "/manifests", Listed: true, AsOf: timeOrNull(epoch), Objects: map[string]int{"services": 3}, Refused: []string{}}, s.Description); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Written{{Prefix: "cilium/state/services/v1/c1/", Cluster: "c1", Entries: 5, Pending: 2}}, s.KVStore.Written); diff != "" {
		t.Error(diff)
	}
	if s.State != StateReady || s.Agent.Leads == nil || !*s.Agent.Leads || !s.KVStore.WriteOnly {
		t.Errorf("%s, %v, %+v", s.State, s.Agent.Leads, s.KVStore)
	}
	d.state.Refused = []string{"a.yaml: it is not valid YAML"}
	if s = status(); s.State != StateReady || len(s.Description.Refused) != 1 {
		t.Errorf("one bad file is %s, %+v", s.State, s.Description)
	}
	d.state = local.State{Listed: true, AsOf: epoch.Add(-time.Minute), Err: errors.New("the directory is gone")}
	if s = status(); s.State != StateDegraded || s.Description.Error != "the directory is gone" {
		t.Errorf("without a source it is %s, %+v", s.State, s.Description)
	}
	d.state.Err = nil
	written[0].Failed, written[0].Err = 1, "permission denied"
	if s = status(); s.State != StateDegraded || s.KVStore.Written[0].Refused != 1 || s.KVStore.Written[0].LastError != "permission denied" {
		t.Errorf("with a refused write it is %s, %+v", s.State, s.KVStore.Written)
	}
	written[0].Failed, written[0].Err = 0, ""
	var code codes.Code
	f.Stopped = func() (codes.Code, string) { return code, "nearly full" }
	if s = status(); s.State != StateReady {
		t.Errorf("with space it is %s, %+v", s.State, s.KVStore)
	}
	code = codes.OwnEtcdFull
	if s = status(); s.State != StateDegraded || s.KVStore.State != StateDegraded || s.KVStore.Message != "nearly full" || s.KVStore.Code != string(code) {
		t.Errorf("without space it is %s, %+v", s.State, s.KVStore)
	}
}
