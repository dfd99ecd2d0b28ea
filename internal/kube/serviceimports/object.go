package serviceimports

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mesh-agent/mesh-agent/internal/base/tables"
	"github.com/mesh-agent/mesh-agent/internal/kube/kubewrite"
	"github.com/mesh-agent/mesh-agent/internal/kube/mcs"
	"github.com/mesh-agent/mesh-agent/pkg/local"
)

func importResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: mcs.Group, Version: mcs.Version, Resource: "serviceimports"}
}

func exportResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: mcs.Group, Version: mcs.Version, Resource: "serviceexports"}
}

func serviceResource() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("services")
}

func sliceResource() schema.GroupVersionResource {
	return discoveryv1.SchemeGroupVersion.WithResource("endpointslices")
}

// object returns the part of an object that is applied.
func object(of any) *unstructured.Unstructured {
	o := kubewrite.Object(of)
	for _, key := range []string{"ports", "endpoints"} { // of a slice; both may be empty, and none of them nothing
		if value, has := o.Object[key]; has && value == nil {
			o.Object[key] = []any{}
		}
	}
	return o
}

// statusOf returns the part of an object of the MCS API that is applied to write its status.
func statusOf(kind string, of metav1.Object, status any) *unstructured.Unstructured {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&struct {
		Status any `json:"status"`
	}{status})
	tables.Must(err)
	o := &unstructured.Unstructured{Object: fields}
	o.SetAPIVersion(mcs.Group + "/" + mcs.Version)
	o.SetKind(kind)
	o.SetNamespace(of.GetNamespace())
	o.SetName(of.GetName())
	setUID(o, of.GetUID())
	return o
}

// setUID restricts the write to the object with this UID; empty: to the object that has the name.
func setUID(o *unstructured.Unstructured, uid types.UID) {
	if uid != "" {
		o.SetUID(uid)
	}
}

func setOwner(o *unstructured.Unstructured, apiVersion, kind, name string, uid types.UID) {
	o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: uid, Controller: new(true)}})
}

// sameImport reports whether an import is already correct, without its status.
func sameImport(is, wanted *local.ServiceImport) bool {
	return sameMeta(is, wanted) && equality.Semantic.DeepEqual(is.Spec, wanted.Spec)
}

func sameMeta(is, wanted metav1.Object) bool {
	return maps.Equal(is.GetLabels(), wanted.GetLabels()) && maps.Equal(is.GetAnnotations(), wanted.GetAnnotations())
}

func sameStatus(is, wanted *local.ServiceImportStatus) bool {
	return is.EndpointSliceObjects == wanted.EndpointSliceObjects && sameClusters(is.Clusters, wanted.Clusters) &&
		sameConditions(is.Conditions, wanted.Conditions)
}

// sameClusters compares them in any order: that of the API server is the one of the first writing.
func sameClusters(is, wanted []local.ClusterStatus) bool {
	return len(is) == len(wanted) && !slices.ContainsFunc(wanted, func(c local.ClusterStatus) bool { return !slices.Contains(is, c) })
}

// sameConditions reports whether the wanted conditions are there, and no others of the types in none. Conditions of
// further types belong to other writers.
func sameConditions(is, wanted []metav1.Condition, none ...string) bool {
	find := func(all []metav1.Condition, kind string) int {
		return slices.IndexFunc(all, func(c metav1.Condition) bool { return c.Type == kind })
	}
	for _, c := range wanted {
		if at := find(is, c.Type); at < 0 || !equality.Semantic.DeepEqual(is[at], c) {
			return false
		}
	}
	return !slices.ContainsFunc(none, func(kind string) bool { return find(is, kind) >= 0 && find(wanted, kind) < 0 })
}

// sameService reports whether a derived Service is already correct, in the fields that this package writes.
func sameService(is, wanted *corev1.Service) bool {
	a, b := &is.Spec, &wanted.Spec
	return sameMeta(is, wanted) && a.Type == b.Type && len(a.Selector) == 0 &&
		slices.EqualFunc(a.Ports, b.Ports, func(p, q corev1.ServicePort) bool {
			return p.Name == q.Name && p.Protocol == q.Protocol && p.Port == q.Port && equality.Semantic.DeepEqual(p.AppProtocol, q.AppProtocol)
		}) &&
		equality.Semantic.DeepEqual(a.InternalTrafficPolicy, b.InternalTrafficPolicy) &&
		equality.Semantic.DeepEqual(a.TrafficDistribution, b.TrafficDistribution) &&
		equality.Semantic.DeepEqual(a.IPFamilyPolicy, b.IPFamilyPolicy) &&
		cmp.Or(a.SessionAffinity, corev1.ServiceAffinityNone) == cmp.Or(b.SessionAffinity, corev1.ServiceAffinityNone) &&
		equality.Semantic.DeepEqual(a.SessionAffinityConfig, b.SessionAffinityConfig)
}

func sameSlice(is, wanted *discoveryv1.EndpointSlice) bool {
	return maps.Equal(is.Labels, wanted.Labels) && is.AddressType == wanted.AddressType &&
		equality.Semantic.DeepEqual(is.Endpoints, wanted.Endpoints) && equality.Semantic.DeepEqual(is.Ports, wanted.Ports)
}

// askFamilies asks the API server which families of addresses Services get, with a dry run that creates a Service. No
// object shows it: the existing Services may all be of one family in a cluster with two.
func (t *term) askFamilies(ctx context.Context, now time.Time) error {
	o := object(&corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "mesh-agent-families"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, IPFamilyPolicy: new(corev1.IPFamilyPolicyPreferDualStack), Ports: []corev1.ServicePort{{Port: 1, Protocol: corev1.ProtocolTCP}}},
	})
	made, err := t.Writer.Try(ctx, serviceResource(), o)
	if err != nil {
		return err
	}
	families, _, err := unstructured.NestedStringSlice(made.Object, "spec", "ipFamilies")
	if err == nil && len(families) == 0 {
		err = fmt.Errorf("the API server gives Services no family of addresses")
	}
	if err != nil {
		return err
	}
	if t.asked = now; !slices.Equal(t.families, families) {
		t.families = families
		t.touchAll()
	}
	return nil
}
