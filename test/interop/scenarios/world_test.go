// Package scenarios tests the behaviour of global services for an operator when the other clusters are Cilium's. Each
// test is named after the behaviour. Manifests describe the own cluster; Cilium encodes the exports of the other
// clusters.
package scenarios

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/members/agentapi"
	"github.com/mesh-agent/mesh-agent/test/interop"
	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// world is an agent of the cluster home, and the clusters east and west, each with
// an etcd that holds what Cilium has encoded.
type world struct {
	t         *testing.T
	cilium    *interop.Peer
	agent     *interop.Agent
	manifests string
	etcds     map[string]*etcdtest.Server
}

// others are the other clusters' IDs.
func others() map[string]uint32 { return map[string]uint32{"east": 2, "west": 3} }

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, cilium: interop.Start(t, interop.Newest, "codec"), etcds: map[string]*etcdtest.Server{}}
	dir := t.TempDir()
	w.manifests = filepath.Join(dir, "manifests")
	w.write("namespace.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n")
	for name, id := range others() {
		w.etcds[name] = etcdtest.Start(t)
		interop.ClientFile(t, filepath.Join(dir, "mesh"), name, w.etcds[name].Endpoint())
		w.put(name, model.Objects{ClusterConfigs: []model.ClusterConfig{{Cluster: name, ID: id, MaxConnectedClusters: 255}}})
	}
	w.agent = interop.StartAgent(t, "run", "--cluster-name", "home", "--cluster-id", "1",
		"--local-manifests", w.manifests, "--clustermesh-config", filepath.Join(dir, "mesh"))
	interop.Until(t, "both clusters to be ready", time.Minute, func(ctx context.Context) error {
		clusters, err := agentapi.List[api.Cluster](ctx, w.agent.Socket, "clusters")
		for _, c := range clusters {
			if !c.Ready {
				return fmt.Errorf("%s is not: %s", c.Name, c.Message)
			}
		}
		if err == nil && len(clusters) < len(w.etcds) {
			return fmt.Errorf("there are %d clusters", len(clusters))
		}
		return err
	})
	return w
}

// put has Cilium encode objects and writes them into the etcd of a cluster.
func (w *world) put(cluster string, objects model.Objects) {
	w.t.Helper()
	for _, e := range w.encode(objects) {
		w.etcds[cluster].Put(w.t, e.Key, string(e.Value))
	}
}

func (w *world) encode(objects model.Objects) []model.KV {
	w.t.Helper()
	return interop.Ask[model.EncodeReply](w.t, w.cilium, "Codec.Encode", objects).Entries
}

// exports makes a cluster export the service "web", with these backends.
func (w *world) exports(cluster string, change func(*model.Service), backends ...string) {
	w.t.Helper()
	w.put(cluster, model.Objects{Services: []model.Service{web(cluster, change, backends...)}})
}

// withdraws makes a cluster stop exporting the service.
func (w *world) withdraws(cluster string) {
	w.t.Helper()
	for _, e := range w.encode(model.Objects{Services: []model.Service{web(cluster, nil)}}) {
		w.etcds[cluster].Delete(w.t, e.Key)
	}
}

// web is the service as a cluster exports it; each backend has the port 9090.
func web(cluster string, change func(*model.Service), backends ...string) model.Service {
	s := model.Service{
		Cluster: cluster, ClusterID: others()[cluster], Namespace: "shop", Name: "web",
		IncludeExternal: true, Shared: true,
		Backends: map[netip.Addr]model.Ports{},
	}
	for _, b := range backends {
		s.Backends[netip.MustParseAddr(b)] = model.Ports{"http": {Protocol: "TCP", Port: 9090}}
	}
	if change != nil {
		change(&s)
	}
	return s
}

// describes makes home's own service "web" have these annotations.
func (w *world) describes(annotations ...string) {
	w.write("web.yaml", `apiVersion: v1
kind: Service
metadata:
  name: web
  namespace: shop
  annotations: {`+strings.Join(annotations, ", ")+`}
spec:
  clusterIPs: [10.1.255.1]
  ports: [{name: http, port: 80, protocol: TCP}]
`)
}

// backs gives home's own service this endpoint, which is ready; without an address it has none.
func (w *world) backs(addresses ...string) {
	text := `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: web-1
  namespace: shop
  labels: {kubernetes.io/service-name: web}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints:
`
	if len(addresses) == 0 {
		text = strings.TrimSpace(text) + " []\n"
	}
	for _, a := range addresses {
		text += "- {addresses: [" + a + "], conditions: {ready: true, serving: true, terminating: false}}\n"
	}
	w.write("endpoints.yaml", text)
}

// write replaces a manifest atomically.
func (w *world) write(name, text string) {
	w.t.Helper()
	err := os.MkdirAll(w.manifests, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(w.manifests, "."+name), []byte(text), 0o644)
	}
	if err == nil {
		err = os.Rename(filepath.Join(w.manifests, "."+name), filepath.Join(w.manifests, name))
	}
	interop.Must(w.t, err)
}

// service asks the agent.
func (w *world) service(ctx context.Context) (*api.Service, error) {
	return agentapi.Get[api.Service](ctx, w.agent.Socket, "services", "shop", "web")
}

// selects waits until traffic goes to just these backends, each "CLUSTER ADDRESS
// NAME/PORT…", and reports the reason when it does not.
func (w *world) selects(when string, want ...string) {
	w.t.Helper()
	slices.Sort(want)
	interop.Until(w.t, "the backends "+when, 15*time.Second, func(ctx context.Context) error {
		s, err := w.service(ctx)
		if err != nil {
			return err
		}
		var got []string
		for _, b := range s.Backends {
			if b.Selected {
				got = append(got, backend(b))
			}
		}
		slices.Sort(got)
		if d := cmp.Diff(want, got); d != "" {
			return fmt.Errorf("traffic goes elsewhere (-want +got):\n%s\nclusters: %+v", d, s.Clusters)
		}
		return nil
	})
}

func backend(b api.Backend) string {
	ports := []string{}
	for _, p := range b.Ports {
		ports = append(ports, fmt.Sprintf("%s/%d", p.Name, p.Port))
	}
	slices.Sort(ports)
	return b.Cluster + " " + b.IP + " " + strings.Join(ports, " ")
}

// says waits until the agent gives this reason for a cluster's part.
func (w *world) says(cluster, reason string) {
	w.t.Helper()
	interop.Until(w.t, cluster+" to be "+reason, 15*time.Second, func(ctx context.Context) error {
		s, err := w.service(ctx)
		if err != nil {
			return err
		}
		for _, c := range s.Clusters {
			if c.Cluster == cluster && strings.Contains(c.Reason, reason) {
				return nil
			}
		}
		return fmt.Errorf("the clusters are %+v", s.Clusters)
	})
}
