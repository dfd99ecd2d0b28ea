package serviceimports

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/statedb"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mesh-agent/mesh-agent/internal/kube/mcs"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/reconciletest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// derived is the derived Service of shop/cart.
func derived() string { return wire.DerivedServiceName("shop", "cart") }

// world is the tables, an API server that applies all writes to these tables, and the parameters of a controller.
// test/kubernetes uses a real API server.
type world struct {
	*reconciletest.World
	db       *statedb.DB
	cluster  *local.Cluster
	services *services.Services
	crds     map[string]*unstructured.Unstructured // guarded by Mu
}

func newWorld(t *testing.T, remotes ...string) *world {
	t.Helper()
	w := &world{World: reconciletest.New(t, remotes...), db: statedb.New(), crds: make(map[string]*unstructured.Unstructured)}
	var err error
	w.cluster, err = local.New(w.db)
	must(t, err)
	w.services, err = services.New(w.db)
	must(t, err)
	w.cluster.Listed()
	return w
}

var must = waittest.Must

// run runs a controller until the function that it returns is called.
func (w *world) run(change ...func(*Params)) (stop func()) {
	w.T.Helper()
	p := Params{
		DB: w.db, Own: wire.ClusterInfo{Name: "c1", ID: 1, MaxConnectedClusters: 255}, GlobalNamespaces: true, Cluster: w.cluster, Services: w.services, Writer: w, Slices: mcs.RequestedSlices,
		Ready: w.IsReady, Remotes: w.All, Report: w.Report,
	}
	for _, c := range change {
		c(&p)
	}
	return w.Run(New(p).Run)
}

// text lists the objects in the namespaces: a line for each import, derived Service, slice of one, and own export.
func (w *world) text() (lines []string) {
	txn := w.db.ReadTxn()
	for im := range w.cluster.ServiceImports.Table().All(txn) {
		var clusters []string
		for _, c := range im.Status.Clusters {
			clusters = append(clusters, c.Cluster)
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("import %s %s [%s] %s %s", local.Name(im), im.Spec.Type, strings.Join(clusters, " "), conditions(im.Status.Conditions), strings.Join(im.Spec.IPs, ","))))
	}
	for svc := range w.cluster.Services.Table().All(txn) {
		if isOurs(svc.Labels) {
			lines = append(lines, fmt.Sprintf("service %s of %s", svc.Name, svc.Labels[mcs.LabelServiceName]))
		}
	}
	for slice := range w.cluster.EndpointSlices.Table().All(txn) {
		if isOurs(slice.Labels) {
			lines = append(lines, fmt.Sprintf("slice %s %s", slice.Name, slice.Endpoints[0].Addresses[0]))
		}
	}
	for e := range w.cluster.ServiceExports.Table().All(txn) {
		lines = append(lines, fmt.Sprintf("export %s %s", local.Name(e), conditions(e.Status.Conditions)))
	}
	slices.Sort(lines)
	return lines
}

// conditions are all of them, as "Type=Status/Reason".
func conditions(all []metav1.Condition) string {
	var texts []string
	for _, c := range all {
		texts = append(texts, fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason))
	}
	return strings.Join(texts, " ")
}

func (w *world) until(what string, want ...string) {
	w.T.Helper()
	want = slices.Sorted(slices.Values(want))
	waittest.Until(w.T, what, func() bool { return slices.Equal(w.text(), want) }, func() string { return fmt.Sprintf("%q; %s", w.text(), w.Wrong()) })
}

// namespace makes a namespace, with annotations as key and value.
func (w *world) namespace(name string, annotations ...string) {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: make(map[string]string)}}
	for i := 0; i+1 < len(annotations); i += 2 {
		n.Annotations[annotations[i]] = annotations[i+1]
	}
	w.cluster.Namespaces.Apply([]store.Change[corev1.Namespace]{{Name: name, New: n}})
}

// remote lets a cluster export shop/cart, so many seconds after the first.
func (w *world) remote(cluster string, seconds int, change ...func(*wire.ServiceExport)) {
	e := &wire.ServiceExport{
		Cluster: cluster, Namespace: "shop", Name: "cart", Type: wire.ServiceExportClusterSetIP, SessionAffinity: wire.SessionAffinityNone,
		ExportCreationTimestamp: wire.ExportTime{Time: epoch().Add(time.Duration(seconds) * time.Second)},
		Ports:                   []wire.ServiceExportPort{{Name: "http", Protocol: "TCP", Port: 80}}, IPFamilies: []string{"IPv4"},
	}
	for _, c := range change {
		c(e)
	}
	w.services.ApplyExports([]store.Change[services.Export]{{Name: e.Namespace + "/" + e.Name, New: services.ExportFromWire(e)}})
}

func (w *world) withdraw(cluster string) {
	w.services.ApplyExports([]store.Change[services.Export]{{Name: "shop/cart", Old: &services.Export{Cluster: cluster, Namespace: "shop", Name: "cart"}}})
}

func epoch() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// own makes shop/cart with a slice, and an export of it.
func (w *world) own(seconds int) {
	w.service()
	w.cluster.EndpointSlices.Apply([]store.Change[discoveryv1.EndpointSlice]{{Name: "shop/cart-abc", New: slice("10.1.0.1")}})
	w.export(seconds)
}

func (w *world) service() {
	w.cluster.Services.Apply([]store.Change[corev1.Service]{{Name: "shop/cart", New: &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart", UID: "cart"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.96.1.1", ClusterIPs: []string{"10.96.1.1"}, IPFamilies: []corev1.IPFamily{"IPv4"}, SessionAffinity: corev1.ServiceAffinityNone,
			Ports: []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}},
		},
	}}})
}

func (w *world) export(seconds int) {
	w.cluster.ServiceExports.Apply([]store.Change[local.ServiceExport]{{Name: "shop/cart", New: &local.ServiceExport{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart", UID: "export", CreationTimestamp: metav1.NewTime(epoch().Add(time.Duration(seconds) * time.Second))},
	}}})
}

func slice(address string) *discoveryv1.EndpointSlice {
	name, number, protocol := "http", int32(8080), corev1.ProtocolTCP
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: "cart-abc", UID: "slice", Labels: map[string]string{wire.LabelServiceName: "cart"}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &number, Protocol: &protocol}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}}},
	}
}
