package httpapi

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/serve/discovery"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest/fakemesh"
)

// TestDiscovery: targets pass the filters of the lists, and have the format that Prometheus reads (xds.md B).
func TestDiscovery(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.fill()
	targets := func(path string) (all []string) {
		t.Helper()
		r := f.get("/v1/discovery/prometheus/" + path)
		if r.Code != http.StatusOK || r.Header().Get("Content-Type") != "application/json" {
			t.Fatalf("%s: %d %s %s", path, r.Code, r.Header(), r.Body)
		}
		var groups []discovery.Group
		if err := json.Unmarshal(r.Body.Bytes(), &groups); err != nil || groups == nil {
			t.Fatalf("%s: %v: %s", path, err, r.Body)
		}
		for _, g := range groups {
			all = append(all, g.Targets...)
		}
		return all
	}
	for path, want := range map[string][]string{
		"nodes?port=9100":                           {"192.168.2.1:9100", "192.168.2.1:9100"},
		"nodes?port=9100&cluster=c2":                {"192.168.2.1:9100"},
		"nodes?port=9100&labels=zone%3Da&name=n1":   {"192.168.2.1:9100"},
		"nodes?port=9100&cluster=nope":              nil,
		"services?namespace=default":                {"web.default.svc.:80"},
		"endpoints?namespace=default":               {"10.2.1.10:80"},
		"endpoints?namespace=default&cluster=c2":    {"10.2.1.10:80"},
		"endpoints?namespace=default&name=nope":     nil,
		"endpoints?namespace=default&labels=no=one": nil,
	} {
		if got := targets(path); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
	if r := f.get("/v1/discovery/prometheus/endpoints?namespace=nope"); r.Body.String() != "[]\n" {
		t.Errorf("no targets are %q", r.Body)
	}
	if r := f.do(http.MethodHead, "/v1/discovery/prometheus/endpoints"); r.Code != http.StatusOK || r.Body.Len() > 0 {
		t.Errorf("HEAD: %d %q", r.Code, r.Body)
	}
	for _, path := range []string{
		"nodes", "nodes?port=0", "nodes?port=http", "nodes?port=1&port=2", "nodes?port=9100&namespace=default",
		"services?port=1", "services?limit=1", "endpoints?cursor=x", "endpoints?labels=a+b",
	} {
		f.wantProblem(t, http.MethodGet, "/v1/discovery/prometheus/"+path, http.StatusBadRequest)
	}
	// Prometheus keeps its last list when a request fails, so an incomplete list is never returned.
	f.mesh.Set(func(is *fakemesh.Facts) { is.NotReady = map[string]string{"c9": "is being listed"} })
	for _, path := range []string{"nodes?port=9100", "services", "endpoints"} {
		f.wantProblem(t, http.MethodGet, "/v1/discovery/prometheus/"+path, http.StatusServiceUnavailable)
	}
	// Also not when the sync timeout has passed and no cluster could be read.
	f.mesh.Set(func(is *fakemesh.Facts) {
		is.NotReady, is.Own = nil, nil
		is.Clusters = []remotecluster.Status{{Name: "c9", Families: map[wire.Resource]remotecluster.FamilyStatus{wire.Services: {}}}}
	})
	for _, path := range []string{"nodes?port=9100", "services", "endpoints"} {
		f.wantProblem(t, http.MethodGet, "/v1/discovery/prometheus/"+path, http.StatusServiceUnavailable)
	}
	const name = "mesh_agent_discovery_answers_total"
	if all := counted(t, f, name); len(all) != 6 || all["nodes given"] != 4 || all["nodes not ready"] != 2 || all["endpoints not ready"] != 2 {
		t.Errorf("%s: %v", name, all)
	}
}
