package kubernetes

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mesh-agent/mesh-agent/internal/kube/mcs"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// twoClusters import from each other, with only the rights of the manifests. Their operators have only the flag
// --mcs-api.
type twoClusters struct{ east, west *importing }

// importing is one of them.
type importing struct {
	*publishing
	dns string // the address of its CoreDNS; empty without one
}

func newTwoClusters(t *testing.T) twoClusters {
	t.Helper()
	two := twoClusters{east: &importing{publishing: newCluster(t, "east", 3)}, west: &importing{publishing: newCluster(t, "west", 7)}}
	two.east.read(t, two.west)
	two.west.read(t, two.east)
	for _, c := range two.both() {
		c.Apply(t, manifest(t, "operate.yaml")[:3]...) // account, role and binding
		c.Apply(t, slices.Concat(manifest(t, "mcs.yaml"), manifest(t, "mcs-crds.yaml"))...)
		c.start(t, "operate", "--mcs-api", "--install-crds", "--kubeconfig", c.Kubeconfig(t, c.gate.Addr(), c.Token(t, "kube-system", "mesh-agent-operate")))
		c.until(t, "the kinds are defined", func() bool {
			_, err := c.Client(t).Resource(mcsResource("serviceexports")).List(t.Context(), metav1.ListOptions{})
			return err == nil
		})
		if program := os.Getenv("COREDNS"); program != "" {
			c.dns = c.coreDNS(t, program)
		}
	}
	return two
}

func (two twoClusters) both() []*importing { return []*importing{two.east, two.west} }

// read lets a cluster read the other one.
func (c *importing) read(t *testing.T, other *importing) {
	t.Helper()
	waittest.Must(t, os.WriteFile(filepath.Join(c.dir, other.cluster), []byte("endpoints: ["+other.etcd.Endpoint()+"]\n"), 0o600))
}

func mcsResource(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: mcs.Group, Version: mcs.Version, Resource: name}
}

func servicesResource() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("services")
}

// list are the objects of a kind in a namespace.
func list[T any](t *testing.T, c *importing, r schema.GroupVersionResource, namespace string) (all []T) {
	t.Helper()
	objects, err := c.Client(t).Resource(r).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
	waittest.Must(t, err)
	for _, o := range objects.Items {
		all = append(all, typed[T](t, &o))
	}
	return all
}

func typed[T any](t *testing.T, o *unstructured.Unstructured) (one T) {
	t.Helper()
	waittest.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &one))
	return one
}

// state is what users and kube-proxy see of the MCS API in a namespace, as lines.
func (c *importing) state(t *testing.T, namespace string) []string {
	t.Helper()
	var lines []string
	for _, im := range list[local.ServiceImport](t, c, mcsResource("serviceimports"), namespace) {
		lines = append(lines, textOfImport(&im))
	}
	for _, e := range list[local.ServiceExport](t, c, mcsResource("serviceexports"), namespace) {
		lines = append(lines, "export"+textOfConditions(e.Status.Conditions))
	}
	all := list[discoveryv1.EndpointSlice](t, c, discoveryv1.SchemeGroupVersion.WithResource("endpointslices"), namespace)
	for _, svc := range list[corev1.Service](t, c, servicesResource(), namespace) {
		if svc.Labels[mcs.LabelServiceName] == "" {
			continue
		}
		for _, port := range svc.Spec.Ports {
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("connects %d to %s", port.Port, strings.Join(reached(t, &svc, port, all), " "))))
		}
		if svc.Spec.SessionAffinity == corev1.ServiceAffinityClientIP {
			lines = append(lines, fmt.Sprint("sticks for ", *svc.Spec.SessionAffinityConfig.ClientIP.TimeoutSeconds))
		}
	}
	slices.Sort(lines)
	return lines
}

func textOfImport(im *local.ServiceImport) string {
	parts := []string{"import", string(im.Spec.Type)}
	for _, p := range im.Spec.Ports {
		parts = append(parts, fmt.Sprintf("%s:%d/%s", p.Name, p.Port, p.Protocol))
	}
	slices.Sort(parts[2:])
	if im.Spec.SessionAffinity == corev1.ServiceAffinityClientIP {
		parts = append(parts, fmt.Sprint("sticky ", *im.Spec.SessionAffinityConfig.ClientIP.TimeoutSeconds))
	}
	for _, of := range []*string{(*string)(im.Spec.InternalTrafficPolicy), im.Spec.TrafficDistribution} {
		if of != nil && *of != "Cluster" {
			parts = append(parts, *of)
		}
	}
	for _, texts := range []map[string]string{im.Labels, im.Annotations} {
		for _, key := range []string{"exported", "other", "of-the-service"} {
			if texts[key] != "" {
				parts = append(parts, key+"="+texts[key])
			}
		}
	}
	if len(im.Spec.IPs) > 0 {
		parts = append(parts, "with an address")
	}
	var clusters []string
	for _, from := range im.Status.Clusters {
		clusters = append(clusters, from.Cluster)
	}
	slices.Sort(clusters)
	return strings.Join(parts, " ") + " of " + strings.Join(clusters, " ") + ", slices " + im.Status.EndpointSliceObjects + textOfConditions(im.Status.Conditions)
}

func textOfConditions(all []metav1.Condition) (text string) {
	all = slices.SortedFunc(slices.Values(all), func(a, b metav1.Condition) int { return cmp.Compare(a.Type, b.Type) })
	for _, c := range all {
		text += fmt.Sprintf(" %s=%s/%s", c.Type, c.Status, c.Reason)
	}
	return text
}

// reached is what kube-proxy would connect to for a port: the endpoints of all slices of the Service that are ready, at
// the slice's port of the same name. Each slice of an import has the labels of the specification, and one cluster as
// its source.
func reached(t *testing.T, svc *corev1.Service, port corev1.ServicePort, all []discoveryv1.EndpointSlice) (to []string) {
	t.Helper()
	for _, s := range all {
		if s.Labels[wire.LabelServiceName] != svc.Name {
			continue
		}
		if manager := s.Labels[discoveryv1.LabelManagedBy]; s.Labels[mcs.LabelServiceName] != svc.Labels[mcs.LabelServiceName] ||
			s.Labels[mcs.LabelSourceCluster] == "" || manager == "" || manager == "endpointslice-controller.k8s.io" {
			t.Errorf("the slice %s of an import: %v", s.Name, s.Labels)
		}
		at := slices.IndexFunc(s.Ports, func(p discoveryv1.EndpointPort) bool {
			return p.Name != nil && *p.Name == port.Name && *p.Protocol == port.Protocol
		})
		if at < 0 {
			continue
		}
		for _, e := range s.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				to = append(to, fmt.Sprintf("%s:%d", e.Addresses[0], *s.Ports[at].Port))
			}
		}
	}
	slices.Sort(to)
	return to
}

// await waits until both clusters have these states in a namespace.
func (two twoClusters) await(t *testing.T, what, namespace string, east, west []string) {
	t.Helper()
	want := [2][]string{sorted(east), sorted(west)}
	var diff string
	waittest.Until(t, what, func() bool {
		diff = gocmp.Diff(want, [2][]string{sorted(two.east.state(t, namespace)), sorted(two.west.state(t, namespace))})
		return diff == ""
	}, func() string { return diff })
}

func sorted(texts []string) []string {
	return slices.AppendSeq(make([]string, 0, len(texts)), slices.Values(slices.Sorted(slices.Values(texts))))
}
