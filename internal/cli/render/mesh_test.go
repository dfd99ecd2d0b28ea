package render_test

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/api"
)

// mesh has the answers of a fake agent: like one of an older release, it passes on everything that remote clusters
// write.
type mesh struct {
	services []api.Service
	nodes    []api.Node
	clusters []api.Cluster
	backends map[string]api.ServiceBackends // by NAMESPACE/NAME
}

// newMesh serves a mesh on the socket of an agent, and returns both.
func newMesh(t *testing.T) (*mesh, *agent) {
	t.Helper()
	m, a := &mesh{services: []api.Service{}, nodes: []api.Node{}, clusters: []api.Cluster{}, backends: make(map[string]api.ServiceBackends)}, &agent{t: t, dir: t.TempDir()}
	a.socket = filepath.Join(a.dir, "s")
	l, err := net.Listen("unix", a.socket)
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(m.serve)}}
	s.Start()
	t.Cleanup(s.Close)
	return m, a
}

func (m *mesh) serve(w http.ResponseWriter, r *http.Request) {
	var answer any
	path := r.URL.Path
	switch name, isBackends := strings.CutPrefix(path, "/v1/backends/"); {
	case isBackends:
		answer = m.backends[name]
	case path == "/v1/status":
		own := api.Cluster{Name: "own"}
		own.Synced.Nodes, own.Synced.Services = true, true
		answer = api.Status{Ready: true, Clusters: []api.Cluster{own}}
	case path == "/v1/services":
		answer = api.List[api.Service]{Items: m.services}
	case path == "/v1/nodes":
		answer = api.List[api.Node]{Items: m.nodes}
	case path == "/v1/clusters":
		answer = api.List[api.Cluster]{Items: m.clusters}
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// add adds a service with groups of backends.
func (m *mesh) add(namespace, name string, groups ...api.BackendGroup) {
	s := api.Service{Namespace: namespace, Name: name, Clusters: []api.ServiceCluster{{Cluster: "east", Reason: "a\nb"}}}
	for _, g := range groups {
		for _, b := range g.Backends {
			s.Backends = append(s.Backends, api.Backend{IP: b.IP, Cluster: b.Cluster, Ports: b.Ports, Hostname: b.Hostname, Zone: b.Zone, Node: b.Node})
		}
	}
	m.services = append(m.services, s)
	m.backends[namespace+"/"+name] = api.ServiceBackends{Namespace: namespace, Name: name, Groups: groups}
}
