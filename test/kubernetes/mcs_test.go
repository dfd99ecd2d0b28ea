package kubernetes

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mesh-agent/mesh-agent/internal/kube/mcs"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// imported is a cluster whose operators serve the MCS API with only the rights of the manifests, and a remote cluster,
// west.
type imported struct {
	*sliced
	token string
}

func newImported(t *testing.T) imported {
	t.Helper()
	i := imported{sliced: newSliced(t)}
	i.Apply(t, manifest(t, "operate.yaml")[:3]...) // account, role and binding
	i.Apply(t, slices.Concat(manifest(t, "mcs.yaml"), manifest(t, "mcs-crds.yaml"), manifest(t, "endpointslices.yaml"))...)
	i.token = i.Token(t, "kube-system", "mesh-agent-operate")
	exports := true
	i.west.Put(t, wire.ClusterConfigPrefix+"/west", string(wire.ClusterConfig{ID: 7, Capabilities: wire.Capabilities{MaxConnectedClusters: 255, ServiceExportsEnabled: &exports}}.Encode()))
	return i
}

func (i imported) serve(t *testing.T, name string, flags ...string) (stop func()) {
	t.Helper()
	return i.operator(t, name, append([]string{"--mcs-api", "--install-crds", "--kubeconfig", i.Kubeconfig(t, i.gate.Addr(), i.token)}, flags...)...)
}

// export lets west export a service, created in this year.
func (i imported) export(t *testing.T, name string, year int, change ...func(*wire.ServiceExport)) {
	t.Helper()
	e := &wire.ServiceExport{
		Cluster: "west", Namespace: "default", Name: name, Type: wire.ServiceExportClusterSetIP, SessionAffinity: wire.SessionAffinityNone,
		ExportCreationTimestamp: wire.ExportTime{Time: time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)}, IPFamilies: []string{"IPv4"},
		Ports: []wire.ServiceExportPort{{Name: "http", Protocol: "TCP", Port: 80}, {Name: "admin", Protocol: "TCP", Port: 9000}},
	}
	for _, c := range change {
		c(e)
	}
	i.west.Put(t, e.Key(), string(e.Encode()))
}

// objects are the objects of the MCS API, and those written for them: a line of text for each, and its resource
// version.
func (i imported) objects(t *testing.T) (lines []string, versions map[string]string) {
	t.Helper()
	versions = make(map[string]string)
	for _, r := range []schema.GroupVersionResource{
		{Group: mcs.Group, Version: "v1alpha1", Resource: "serviceimports"},
		{Group: mcs.Group, Version: mcs.Version, Resource: "serviceexports"},
		{Version: "v1", Resource: "services"},
		{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
	} {
		list, err := i.Client(t).Resource(r).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return []string{err.Error()}, nil // the kind may not be defined yet
		}
		for _, o := range list.Items {
			if r.Resource == "serviceexports" || o.GetLabels()[mcs.LabelWritten] == mcs.Written {
				lines = append(lines, textOfObject(&o))
				versions[o.GetKind()+" "+o.GetName()] = o.GetResourceVersion()
			}
		}
	}
	slices.Sort(lines)
	return lines, versions
}

func textOfObject(o *unstructured.Unstructured) string {
	text := o.GetKind() + " " + o.GetName()
	if kind, _, _ := unstructured.NestedString(o.Object, "spec", "type"); o.GetKind() == "ServiceImport" {
		text += " " + kind
	}
	clusters, _, _ := unstructured.NestedSlice(o.Object, "status", "clusters")
	for _, c := range clusters {
		text += fmt.Sprint(" ", c.(map[string]any)["cluster"])
	}
	if ips, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "ips"); len(ips) > 0 {
		text += " with an address"
	}
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	if o.GetKind() == "Service" {
		return text
	}
	var texts []string
	for _, c := range conditions {
		c := c.(map[string]any)
		texts = append(texts, fmt.Sprintf("%s=%s/%s", c["type"], c["status"], c["reason"]))
	}
	slices.Sort(texts)
	if len(texts) > 0 {
		text += ": " + strings.Join(texts, " ")
	}
	endpoints, _, _ := unstructured.NestedSlice(o.Object, "endpoints")
	for _, e := range endpoints {
		text += fmt.Sprint(" ", e.(map[string]any)["addresses"])
	}
	return text
}

// await waits until there are these objects, and returns their resource versions.
func (i imported) await(t *testing.T, what string, want ...string) (versions map[string]string) {
	t.Helper()
	want = slices.Sorted(slices.Values(want))
	var lines []string
	waittest.Until(t, what, func() bool {
		lines, versions = i.objects(t)
		return slices.Equal(lines, want)
	}, func() string { return strings.Join(lines, "\n") })
	return versions
}

func plainService(name, more string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {namespace: default, name: %s}
spec: {selector: {app: %[1]s}, ports: [{name: http, port: 80, protocol: TCP}]%s}
`, name, more)
}

func exportOf(name, spec string) string {
	return fmt.Sprintf(`
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {namespace: default, name: %s}
spec: {%s}
`, name, spec)
}

// TestTheMCSAPI: from definitions, and exports of users and of a remote cluster, to objects; over restarts and over an
// unreachable remote cluster, until its client file is removed and the last export is deleted (mcs.md B).
func TestTheMCSAPI(t *testing.T) {
	t.Parallel()
	i := newImported(t)
	i.export(t, "web", 2000, func(e *wire.ServiceExport) {
		e.Labels, e.Annotations = map[string]string{"team": "a"}, map[string]string{"note": "n"}
		e.SessionAffinity, e.TrafficDistribution = wire.SessionAffinityClientIP, new(string(wire.PreferClose))
	})
	i.export(t, "cart", 2000, func(e *wire.ServiceExport) { e.Namespace = "shop" })
	stop := i.serve(t, "first")
	i.Apply(t, plainService("web", ""), slice("web-1", "web", "10.1.0.1"), exportOf("web", "exportedLabels: {team: a}"), exportOf("none", ""))
	derived := wire.DerivedServiceName("default", "web")
	service, copied := "Service "+derived, "EndpointSlice "+derived+"-1 [10.1.0.1]"
	none := "ServiceExport none: Ready=False/Pending Valid=False/NoService"
	conflicts := "ServiceExport web: Conflict=True/PortConflict,SessionAffinityConflict,AnnotationsConflict,TrafficDistributionConflict Ready=True/Ready Valid=True/Valid"
	first := i.await(t, "objects", "ServiceImport web ClusterSetIP east west with an address: Ready=True/Ready", service, copied, conflicts, none)
	i.until(t, "the own backend is one of the derived Service", func() bool {
		return strings.Contains(i.contents(t)["cilium/state/services/v1/east/default/"+derived], "10.1.0.1")
	})

	// Another user's object with the same name stays, in a namespace that is created later.
	foreign := `
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata: {namespace: shop, name: cart}
spec: {type: Headless, ports: []}
`
	i.Apply(t, namespace("shop"))
	cart := []string{"ServiceImport cart ClusterSetIP west with an address: Ready=True/Ready", "Service " + wire.DerivedServiceName("shop", "cart")}
	i.await(t, "an import in another namespace", append([]string{"ServiceImport web ClusterSetIP east west with an address: Ready=True/Ready", service, copied, conflicts, none}, cart...)...)
	stop()
	_, written := i.objects(t) // the first operator may have written an object in two steps
	for name := range first {
		first[name] = written[name]
	}
	i.Delete(t, foreign, strings.Replace(plainService(wire.DerivedServiceName("shop", "cart"), ""), "namespace: default", "namespace: shop", 1))
	i.Apply(t, foreign)

	// Another process writes only new objects.
	i.export(t, "late", 2001)
	stop = i.serve(t, "second")
	late := []string{"ServiceImport late ClusterSetIP west with an address: Ready=True/Ready", "Service " + wire.DerivedServiceName("default", "late")}
	all := append([]string{"ServiceImport web ClusterSetIP east west with an address: Ready=True/Ready", service, copied, conflicts, none}, late...)
	i.unchanged(t, first, i.await(t, "one more", all...))

	// An older export of another type.
	i.export(t, "late", 1999, func(e *wire.ServiceExport) { e.Type = wire.ServiceExportHeadless })
	all[5] = "ServiceImport late Headless west: Ready=True/Ready"
	i.await(t, "headless", all...)

	// The remote cluster is unreachable when an operator starts. Work without it is done.
	stop()
	i.west.Kill(t)
	stop = i.serve(t, "third", "--clustermesh-sync-timeout", "1s")
	i.Delete(t, exportOf("none", ""))
	i.Apply(t, plainService("own", ""), exportOf("own", ""))
	own := []string{"ServiceImport own ClusterSetIP east with an address: Ready=True/Ready", "Service " + wire.DerivedServiceName("default", "own"), "ServiceExport own: Conflict=False/NoConflicts Ready=True/Ready Valid=True/Valid"}
	all = append(slices.DeleteFunc(all, func(line string) bool { return line == none }), own...)
	i.unchanged(t, map[string]string{"ServiceImport web": first["ServiceImport web"], "Service " + derived: first["Service "+derived]}, i.await(t, "what is imported stays", all...))

	waittest.Must(t, os.Remove(i.file))
	agreed := "ServiceExport web: Conflict=False/NoConflicts Ready=True/Ready Valid=True/Valid"
	i.await(t, "the own exports", append([]string{"ServiceImport web ClusterSetIP east with an address: Ready=True/Ready", service, copied, agreed}, own...)...)
	i.Delete(t, exportOf("web", ""), exportOf("own", ""))
	i.await(t, "nothing")
	imports := i.Client(t).Resource(schema.GroupVersionResource{Group: mcs.Group, Version: mcs.Version, Resource: "serviceimports"})
	if o, err := imports.Namespace("shop").Get(t.Context(), "cart", metav1.GetOptions{}); err != nil || len(o.GetManagedFields()) != 1 {
		t.Errorf("somebody else's: %v, %+v", err, o)
	}
	stop()
}
