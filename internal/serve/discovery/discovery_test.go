package discovery_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/statedb"
	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/internal/serve/discovery"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest/viewtest"
)

func world(t *testing.T) (*viewtest.World, discovery.Known) {
	t.Helper()
	w := viewtest.New(t)
	w.Play(t, `
		service own shop/cart affinity=local 10.0.0.1,host=cart-0,zone=a,node=n1
		service east shop/cart 10.1.0.1 fd00::1,ports=http:8080+dns:53/UDP,state=terminating
		node east n1 192.168.1.1 fd00::2
		node east nowhere
	`)
	return w, discovery.Known{Stale: func(cluster string) bool { return cluster == "east" }, Zone: "clusterset.local"}
}

func show(t *testing.T, all []discovery.Group) string {
	t.Helper()
	var out strings.Builder
	for _, g := range all {
		text, err := json.Marshal(g)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString(strings.ReplaceAll(string(text), "__meta_mesh_", "") + "\n")
	}
	return out.String()
}

func TestTargets(t *testing.T) {
	t.Parallel()
	w, known := world(t)
	txn := w.View.DB.ReadTxn()
	global := func() []*services.Global { return statedb.Collect(w.View.Services.Global().All(txn)) }
	for name, test := range map[string]struct {
		got  []discovery.Group
		want string
	}{
		"nodes": {
			slices.Collect(discovery.Nodes(statedb.ToSeq(w.View.Nodes.Table().All(txn)), 9100, known)),
			`{"targets":["192.168.1.1:9100"],"labels":{"address_family":"IPv4","cluster":"east","cluster_id":"2","node_address_internalip":"192.168.1.1","node_name":"n1","stale":"true"}}
`,
		},
		"endpoints": {
			slices.Collect(discovery.Endpoints(slices.Values(global()), known)),
			`{"targets":["10.0.0.1:8080"],"labels":{"address_family":"IPv4","cluster":"own","cluster_id":"1","draining":"false","endpoint_hostname":"cart-0","endpoint_node_name":"n1","endpoint_zone":"a","group":"0","local":"true","namespace":"shop","port_name":"http","port_number":"8080","port_protocol":"TCP","service_affinity":"local","service_name":"cart","stale":"false"}}
{"targets":["10.1.0.1:8080"],"labels":{"address_family":"IPv4","cluster":"east","cluster_id":"2","draining":"false","group":"1","local":"false","namespace":"shop","port_name":"http","port_number":"8080","port_protocol":"TCP","service_affinity":"local","service_name":"cart","stale":"true"}}
{"targets":["[fd00::1]:53"],"labels":{"address_family":"IPv6","cluster":"east","cluster_id":"2","draining":"true","group":"1","local":"false","namespace":"shop","port_name":"dns","port_number":"53","port_protocol":"UDP","service_affinity":"local","service_name":"cart","stale":"true"}}
{"targets":["[fd00::1]:8080"],"labels":{"address_family":"IPv6","cluster":"east","cluster_id":"2","draining":"true","group":"1","local":"false","namespace":"shop","port_name":"http","port_number":"8080","port_protocol":"TCP","service_affinity":"local","service_name":"cart","stale":"true"}}
`,
		},
		"services": {
			slices.Collect(discovery.Services(slices.Values(global()), known)),
			`{"targets":["cart.shop.svc.clusterset.local:53"],"labels":{"clusters":",east,own,","namespace":"shop","port_name":"dns","port_number":"53","port_protocol":"UDP","service_affinity":"local","service_name":"cart","stale":"true"}}
{"targets":["cart.shop.svc.clusterset.local:8080"],"labels":{"clusters":",east,own,","namespace":"shop","port_name":"http","port_number":"8080","port_protocol":"TCP","service_affinity":"local","service_name":"cart","stale":"true"}}
`,
		},
	} {
		if diff := cmp.Diff(test.want, show(t, test.got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestDualStackPods: a pod with two addresses is one target, with the other address as a label.
func TestDualStackPods(t *testing.T) {
	t.Parallel()
	w := viewtest.New(t)
	w.Play(t, "address east 10.1.0.1 shop/cart-0\naddress east fd00::1 shop/cart-0\nservice east shop/cart 10.1.0.1 fd00::1 fd00::2")
	known := discovery.Known{Stale: func(string) bool { return false }, Pod: w.View.Pod}
	var got []string
	for g := range discovery.Endpoints(statedb.ToSeq(w.View.Services.Global().All(w.View.DB.ReadTxn())), known) {
		got = append(got, g.Targets[0]+" "+g.Labels["__meta_mesh_address_family"]+" "+g.Labels["__meta_mesh_additional_address"])
	}
	if want := []string{"10.1.0.1:8080 IPv4 [fd00::1]:8080", "[fd00::2]:8080 IPv6 "}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestHostileLabels: every Prometheus accepts the names of the labels, and values are UTF-8.
func TestHostileLabels(t *testing.T) {
	t.Parallel()
	n := &nodes.Node{Cluster: "east", Name: "n\xff1", Labels: map[string]string{"a.b/c": "1", "a-b_c": "2", "é\"}": "\xf0\x28"}}
	w := viewtest.New(t)
	w.Play(t, "node east x 10.0.0.1")
	for with := range w.View.Nodes.Table().All(w.View.DB.ReadTxn()) {
		n.Addresses = with.Addresses
	}
	got := slices.Collect(discovery.Nodes(slices.Values([]*nodes.Node{n}), 1, discovery.Known{Stale: func(string) bool { return false }}))
	want := `{"targets":["10.0.0.1:1"],"labels":{"address_family":"IPv4","cluster":"east","node_address_internalip":"10.0.0.1","node_label____":"�(","node_label_a_b_c":"2","node_name":"n�1","stale":"false"}}` + "\n"
	if diff := cmp.Diff(want, show(t, got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestImportedServices: imported services have the name that clients use, and each name occurs once.
func TestImportedServices(t *testing.T) {
	t.Parallel()
	w := viewtest.New(t)
	derived := wire.DerivedServiceName("shop", "cart")
	w.Play(t, "export east shop/cart\nservice east shop/"+derived+" ports=http:80 10.1.0.1\nservice own shop/"+derived+" ports=http:80 10.0.0.1\nservice east shop/cart ports=http:80 10.1.0.1")
	txn := w.View.DB.ReadTxn()
	all := statedb.Collect(w.View.Services.Global().All(txn))
	known := discovery.Known{
		Stale: func(string) bool { return false }, Zone: "clusterset.local",
		Name: func(g *services.Global) string { return w.View.Services.ClientName(txn, g) },
	}
	for _, g := range slices.Collect(discovery.Endpoints(slices.Values(all), known)) {
		if name := g.Labels["__meta_mesh_service_name"]; name != "cart" {
			t.Errorf("a target of %s: %v", name, g)
		}
	}
	targets := slices.Collect(discovery.Services(slices.Values(all), known))
	if len(targets) != 1 || targets[0].Targets[0] != "cart.shop.svc.clusterset.local:8080" || targets[0].Labels["__meta_mesh_clusters"] != ",east,own," {
		t.Errorf("%v", targets)
	}
}
