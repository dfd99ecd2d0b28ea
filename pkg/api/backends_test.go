package api

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// TestBackendsFromBothFormats: what endpoint slices add, which backends get the
// traffic, and that those of a withheld cluster are not there.
func TestBackendsFromBothFormats(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	yes, no, node := true, false, "n7"
	f.services.Apply(created(
		&services.Service{
			Cluster: "c1", ClusterID: 1, Namespace: "ns", Name: "web", Source: wire.SourceKVStore, Shared: true, IncludeExternal: true, Affinity: wire.AffinityLocal,
			Backends: []services.Backend{{IP: ip("10.1.0.1")}},
		},
		&services.Service{
			Cluster: "c2", ClusterID: 2, Namespace: "ns", Name: "web", Source: wire.SourceClusterMesh, Shared: true,
			Backends: []services.Backend{{IP: ip("10.2.0.1")}},
		},
	))
	stopping := &wire.EndpointSlice{
		Cluster: "c1", ClusterID: 1, Namespace: "ns", Name: "web-1", AddressType: wire.AddressTypeIPv4,
		Labels: map[string]string{wire.LabelServiceName: "web"},
		Endpoints: []wire.Endpoint{{
			Addresses: []string{"10.1.0.1"}, NodeName: &node,
			Conditions: wire.EndpointConditions{Ready: &no, Serving: &yes, Terminating: &yes},
		}},
	}
	get := func() Service { return object[Service](t, f, "/v1/services/ns/web") }
	found := func() []ServiceName { return object[Lookup](t, f, "/v1/lookup/10.2.0.1").Services }
	mine := Backend{IP: "10.1.0.1", Cluster: "c1", Ports: []Port{}, Ready: true, Serving: true, Local: true, Preferred: true, Selected: true}
	theirs := Backend{IP: "10.2.0.1", Cluster: "c2", Ports: []Port{}, Ready: true, Serving: true}
	if diff := cmp.Diff([]Backend{mine, theirs}, get().Backends); diff != "" {
		t.Errorf("an active local backend: %s", diff)
	}
	if reason := get().Clusters[1].Reason; !strings.Contains(reason, "the affinity is local") {
		t.Errorf("the reason is %q", reason)
	}
	f.services.ApplySlices(created(services.SliceFromWire(stopping, wire.SourceKVStore)))
	mine.Node, mine.Ready, mine.Terminating = "n7", false, true
	theirs.Selected = true
	if diff := cmp.Diff([]Backend{mine, theirs}, get().Backends); diff != "" {
		t.Errorf("a terminating local backend: %s", diff)
	}
	f.services.Withhold("c2", true)
	if diff := cmp.Diff([]Backend{mine}, get().Backends); diff != "" {
		t.Errorf("withheld: %s", diff)
	}
	if reason := get().Clusters[1].Reason; !strings.Contains(reason, "withheld") {
		t.Errorf("the reason is %q", reason)
	}
	if got := found(); len(got) != 0 {
		t.Errorf("a withheld backend is found in %v", got)
	}
	f.services.Withhold("c2", false)
	if got := found(); !slices.Equal(got, []ServiceName{{"ns", "web"}}) {
		t.Errorf("the backend is found in %v", got)
	}
}
