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

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

const (
	// LabelOwner is on everything that is written here, with the UID of the Service that owns it:
	// what has it not is never changed or deleted.
	LabelOwner = "mesh-agent.io/endpointslice-owner"
	// ManagedBy is the value of the label managed-by, by which agents of Cilium tell slices of remote
	// backends, which they have from the mesh itself (mcs.md C).
	ManagedBy = wire.MeshSliceManager
	// LabelCluster is on slices of remote backends with the name of their cluster (mcs.md B).
	LabelCluster = "multicluster.kubernetes.io/source-cluster"

	internalLabels = "mesh.cilium.io/" // must not reach the API server (mcs.md C)
)

// Resource is that of EndpointSlices.
func Resource() schema.GroupVersionResource {
	return discoveryv1.SchemeGroupVersion.WithResource("endpointslices")
}

// IsOurs tells whether this program wrote a slice, and nobody has taken it over.
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

// nameOf is the first name for a slice that is not taken: the same in every process that finds the same
// slices. Names of Services have 63 characters at the most and those of clusters 32, so that it is short enough.
func nameOf(svc *corev1.Service, at place, taken func(string) bool) string {
	for n := 0; ; n++ {
		sum := sha256.Sum256([]byte(strings.Join([]string{svc.Namespace, svc.Name, at.cluster, string(at.family), strconv.Itoa(n)}, "/")))
		name := svc.Name + "-" + at.cluster + "-" + hex.EncodeToString(sum[:4])
		if !taken(name) {
			return name
		}
	}
}

// object is a slice as it is applied.
func object(slice *discoveryv1.EndpointSlice) *unstructured.Unstructured {
	labels := make(map[string]any, len(slice.Labels))
	for key, value := range slice.Labels {
		labels[key] = value
	}
	var owners []any
	for _, o := range slice.OwnerReferences {
		owners = append(owners, map[string]any{
			"apiVersion": o.APIVersion, "kind": o.Kind, "name": o.Name, "uid": string(o.UID), "controller": value(o.Controller),
		})
	}
	metadata := map[string]any{"namespace": slice.Namespace, "name": slice.Name, "labels": labels, "ownerReferences": owners}
	if slice.UID != "" {
		metadata["uid"] = string(slice.UID)
	}
	endpoints := make([]any, 0, len(slice.Endpoints))
	for i := range slice.Endpoints {
		endpoints = append(endpoints, endpointObject(&slice.Endpoints[i]))
	}
	o := map[string]any{
		"apiVersion": discoveryv1.SchemeGroupVersion.String(), "kind": "EndpointSlice", "metadata": metadata,
		"addressType": string(slice.AddressType), "endpoints": endpoints,
	}
	if len(slice.Ports) > 0 {
		ports := make([]any, 0, len(slice.Ports))
		for _, p := range slice.Ports {
			ports = append(ports, map[string]any{"name": value(p.Name), "protocol": string(value(p.Protocol)), "port": int64(value(p.Port))})
		}
		o["ports"] = ports
	}
	return &unstructured.Unstructured{Object: o}
}

func endpointObject(e *discoveryv1.Endpoint) map[string]any {
	addresses := make([]any, 0, len(e.Addresses))
	for _, a := range e.Addresses {
		addresses = append(addresses, a)
	}
	o := map[string]any{
		"addresses": addresses, "nodeName": value(e.NodeName), "zone": value(e.Zone),
		"conditions": map[string]any{
			"ready": value(e.Conditions.Ready), "serving": value(e.Conditions.Serving), "terminating": value(e.Conditions.Terminating),
		},
	}
	if e.Hostname != nil {
		o["hostname"] = *e.Hostname
	}
	return o
}
