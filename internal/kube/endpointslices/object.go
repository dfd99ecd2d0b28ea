package endpointslices

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mesh-agent/mesh-agent/internal/kube/kubewrite"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

const (
	// LabelOwner is on every slice that this package writes, with the UID of the Service that owns it. Slices without
	// it are never changed or deleted.
	LabelOwner = "mesh-agent.io/endpointslice-owner"
	// ManagedBy is the value of the label managed-by with which Cilium's agents recognize slices of remote backends,
	// which they get from the mesh itself (mcs.md C).
	ManagedBy = wire.MeshSliceManager
	// LabelCluster is on slices of remote backends with the name of their cluster (mcs.md B).
	LabelCluster = "multicluster.kubernetes.io/source-cluster"

	internalLabels = "mesh.cilium.io/" // must not reach the API server (mcs.md C)
)

// Resource is that of EndpointSlices.
func Resource() schema.GroupVersionResource {
	return discoveryv1.SchemeGroupVersion.WithResource("endpointslices")
}

// IsOurs reports whether this program wrote a slice, and no other writer has taken it over.
func IsOurs(slice *discoveryv1.EndpointSlice) bool {
	_, owned := slice.Labels[LabelOwner]
	return owned && slice.Labels[discoveryv1.LabelManagedBy] == ManagedBy
}

// labels are those of the Service, with what says what the slice is (mcs.md C).
func labels(svc *corev1.Service, cluster string) map[string]string {
	all := make(map[string]string, len(svc.Labels)+5)
	for key, value := range svc.Labels {
		if !strings.HasPrefix(key, internalLabels) {
			all[key] = value
		}
	}
	delete(all, corev1.IsHeadlessService)
	if headless(svc) {
		all[corev1.IsHeadlessService] = ""
	}
	all[discoveryv1.LabelServiceName] = svc.Name
	all[discoveryv1.LabelManagedBy] = ManagedBy
	all[LabelCluster] = cluster
	all[LabelOwner] = string(svc.UID)
	return all
}

// nameOf is the first name for a slice that is not taken: the same in every process that finds the same slices. Names
// of Services have at most 63 characters and those of clusters 32, so the name is short enough.
func nameOf(svc *corev1.Service, at place, taken func(string) bool) string {
	for n := 0; ; n++ {
		sum := sha256.Sum256([]byte(strings.Join([]string{svc.Namespace, svc.Name, at.cluster, string(at.family), strconv.Itoa(n)}, "/")))
		name := svc.Name + "-" + at.cluster + "-" + hex.EncodeToString(sum[:4])
		if !taken(name) {
			return name
		}
	}
}

// object is a slice as it is applied: it may be without ports, and not without a list of endpoints.
func object(slice *discoveryv1.EndpointSlice) *unstructured.Unstructured {
	o := kubewrite.Object(slice)
	if len(slice.Ports) == 0 {
		delete(o.Object, "ports")
	}
	if len(slice.Endpoints) == 0 {
		o.Object["endpoints"] = []any{}
	}
	return o
}
