package publish

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// globalService is a manifest of a service that is exported.
func globalService(name string) string {
	return fmt.Sprintf("{metadata: {namespace: prod, name: %s, annotations: {service.cilium.io/global: 'true'}}, spec: {clusterIP: 10.0.0.1}}", name)
}

func slice(name, service, address string) string {
	return fmt.Sprintf("{metadata: {namespace: prod, name: %s, labels: {kubernetes.io/service-name: %s}}, addressType: IPv4, endpoints: [{addresses: [%s]}]}", name, service, address)
}

// servicesAt runs the publishing of services.
func servicesAt(w *world) (services, slices, exports *target) {
	services, slices, exports = newTarget(), newTarget(), newTarget()
	w.start(NewServices(w.cluster, cluster2(), true, ServiceTargets{services, slices, exports}).Run)
	w.start(NewServices(w.cluster, cluster2(), true, ServiceTargets{}).Run) // without targets nothing is published
	return services, slices, exports
}

func TestNothingIsPublishedBeforeEverythingIsListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	services, slices, exports := servicesAt(w)
	set(t, w.cluster.Services, globalService("a"))
	set(t, w.cluster.EndpointSlices, slice("a-1", "a", "10.1.0.1"))
	set(t, w.cluster.ServiceExports, "metadata: {namespace: prod, name: a}")
	if len(services.get())+len(slices.get())+len(exports.get()) > 0 {
		t.Error("something is published already")
	}
	w.listed()
	for _, to := range []*target{services, slices, exports} {
		to.until(t, "completeness", func(map[string]string) bool { return to.isComplete() })
		if len(to.complete) != 1 {
			t.Errorf("it was complete with %v", to.complete)
		}
	}
	if v := services.get()["prod/a"]; !strings.Contains(v, `"backends":{"10.1.0.1"`) {
		t.Errorf("published: %s", v)
	}
}

func TestASliceThatStaysIsNotPublishedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	services, slices, _ := servicesAt(w)
	w.listed()
	set(t, w.cluster.Services, globalService("a"))
	set(t, w.cluster.EndpointSlices, slice("a-1", "a", "10.1.0.1"))
	slices.untilNames(t, "prod/a-1")
	set(t, w.cluster.EndpointSlices, slice("a-2", "a", "10.1.0.2"))
	slices.untilNames(t, "prod/a-1", "prod/a-2")
	services.until(t, "both", func(v map[string]string) bool { return strings.Contains(v["prod/a"], "10.1.0.2") })
	if slices.puts != 2 {
		t.Errorf("%d slices were published", slices.puts)
	}
}

// For any changes of the objects, in any order, the published values in the end follow from the existing objects.
func TestWhatIsPublishedFollowsFromTheObjects(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		services, slices, exports := newTarget(), newTarget(), newTarget()
		defer background(t, NewServices(w.cluster, cluster2(), true, ServiceTargets{services, slices, exports}).Run)()
		flag := rapid.SampledFrom([]string{"", "true", "false"})
		name := rapid.SampledFrom([]string{"a", "b", "c"})
		namespace := rapid.SampledFrom([]string{"n1", "n2"})
		meta := func(annotation string) metav1.ObjectMeta {
			o := metav1.ObjectMeta{Namespace: namespace.Draw(rt, "namespace"), Name: name.Draw(rt, "name")}
			if value := flag.Draw(rt, "flag"); value != "" {
				o.Annotations = map[string]string{annotation: value}
			}
			return o
		}
		rt.Repeat(map[string]func(*rapid.T){
			"service": func(rt *rapid.T) {
				toggle(rt, w, w.cluster.Services, &corev1.Service{ObjectMeta: meta(wire.AnnotationGlobal)})
			},
			"export": func(rt *rapid.T) {
				toggle(rt, w, w.cluster.ServiceExports, &local.ServiceExport{ObjectMeta: meta("x")})
			},
			"namespace": func(rt *rapid.T) {
				o := meta(wire.AnnotationGlobalNamespace)
				o.Name, o.Namespace = o.Namespace, ""
				toggle(rt, w, w.cluster.Namespaces, &corev1.Namespace{ObjectMeta: o})
			},
			"slice": func(rt *rapid.T) {
				o := meta("x")
				o.Labels = map[string]string{wire.LabelServiceName: name.Draw(rt, "service")}
				toggle(rt, w, w.cluster.EndpointSlices, &discoveryv1.EndpointSlice{
					ObjectMeta: o, AddressType: rapid.SampledFrom([]discoveryv1.AddressType{"IPv4", "FQDN"}).Draw(rt, "type"),
					Endpoints: []discoveryv1.Endpoint{{Addresses: []string{fmt.Sprintf("10.0.0.%d", rapid.IntRange(1, 3).Draw(rt, "address"))}}},
				})
			},
			"listed": func(*rapid.T) { w.listed() },
		})
		w.listed()
		wantServices, wantSlices, wantExports := naive(w)
		for _, c := range []struct {
			to   *target
			want map[string]string
		}{{services, wantServices}, {slices, wantSlices}, {exports, wantExports}} {
			c.to.until(rt, fmt.Sprint("just what follows, which is ", c.want), func(v map[string]string) bool { return maps.Equal(v, c.want) })
		}
	})
}

// toggle puts an object into a table, or removes the one of its name.
func toggle[T any, P local.Object[T]](rt *rapid.T, w *world, to *local.Objects[T, P], o P) {
	old, found := to.Get(w.db.ReadTxn(), local.Name(o))
	if found && rapid.Bool().Draw(rt, "remove") {
		to.Apply([]store.Change[T]{{Old: (*T)(old)}})
		return
	}
	to.Apply([]store.Change[T]{{New: (*T)(o)}})
}

// naive are the values to publish, made from the tables as they are.
func naive(w *world) (services, slices, exports map[string]string) {
	services, slices, exports = make(map[string]string), make(map[string]string), make(map[string]string)
	txn, c := w.db.ReadTxn(), w.cluster
	for svc := range c.Services.Table().All(txn) {
		name := local.Name(svc)
		namespace, _ := c.Namespaces.Get(txn, svc.Namespace)
		if e, marked := c.ServiceExports.Get(txn, name); marked && global(namespace, true) {
			exports[name] = string(ServiceExport(cluster2(), e, svc).Encode())
		}
		if !Exported(svc, namespace, true) {
			continue
		}
		var of []*discoveryv1.EndpointSlice
		for s := range c.EndpointSlices.Table().All(txn) {
			if s.Namespace == svc.Namespace && s.Labels[wire.LabelServiceName] == svc.Name {
				of = append(of, s)
				if v := EndpointSlice(cluster2(), s); v != nil {
					slices[local.Name(s)] = string(v.Encode())
				}
			}
		}
		services[name] = string(Service(cluster2(), svc, of).Encode())
	}
	return services, slices, exports
}

// TestSlicesOfRemoteBackendsAreNotPublished: nor are they backends of ours in the view. They would go round
// between clusters (mcs.md C).
func TestSlicesOfRemoteBackendsAreNotPublished(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ofMesh := func(name, address, managedBy string) string {
		return fmt.Sprintf("{metadata: {namespace: prod, name: %s, labels: {kubernetes.io/service-name: a, endpointslice.kubernetes.io/managed-by: %s}}, addressType: IPv4, endpoints: [{addresses: [%s]}]}", name, managedBy, address)
	}
	set(t, w.cluster.Services, globalService("a"))
	set(t, w.cluster.EndpointSlices, slice("a-1", "a", "10.1.0.1"))
	set(t, w.cluster.EndpointSlices, ofMesh("a-west-1", "10.2.0.1", "endpointslice-mesh-controller.cilium.io"))
	services, slices, _ := servicesAt(w)
	w.listed()
	services.until(t, "the own backend alone", func(all map[string]string) bool {
		return strings.Contains(all["prod/a"], "10.1.0.1") && !strings.Contains(all["prod/a"], "10.2.0.1")
	})
	slices.until(t, "completeness", func(map[string]string) bool { return slices.isComplete() })
	if all := slices.get(); len(all) != 1 || all["prod/a-1"] == "" {
		t.Errorf("published: %v", slices.get())
	}
	// Another writer owns it now, and later no longer.
	set(t, w.cluster.EndpointSlices, ofMesh("a-west-1", "10.2.0.1", "somebody"))
	slices.until(t, "both", func(all map[string]string) bool { return len(all) == 2 })
	set(t, w.cluster.EndpointSlices, ofMesh("a-west-1", "10.2.0.1", "endpointslice-mesh-controller.cilium.io"))
	slices.until(t, "the own one alone", func(all map[string]string) bool { return len(all) == 1 })
	services.until(t, "the own backend alone again", func(all map[string]string) bool { return !strings.Contains(all["prod/a"], "10.2.0.1") })
}
