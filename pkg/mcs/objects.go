package mcs

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The kinds of the MCS API (mcs.md B, API surface).
const (
	Group             = "multicluster.x-k8s.io"
	Version           = "v1beta1" // which is written; v1alpha1 has the same schema
	KindServiceImport = "ServiceImport"
	KindServiceExport = "ServiceExport"
)

// The labels and annotations of what is written (mcs.md B).
const (
	LabelServiceName   = "multicluster.kubernetes.io/service-name"
	LabelSourceCluster = "multicluster.kubernetes.io/source-cluster"
	LabelLocalSlice    = "service.cilium.io/local-endpointslice"
	// LabelWritten is on everything that is written here, with the value Written: nothing else is deleted.
	LabelWritten = "mesh-agent.io/written-for"
	Written      = "mcs-api"

	AnnotationDerived   = "multicluster.kubernetes.io/derived-service"
	AnnotationFamilies  = "clustermesh.cilium.io/supported-ip-families"
	AnnotationSlices    = "service.cilium.io/global-sync-endpoint-slices"
	ManagedByLocalSlice = "endpointslice-local-mcsapi-controller.cilium.io" // who manages slices of [LocalSlices]
)

// ServiceImport is a service of the clusterset as one cluster has it (multicluster.x-k8s.io).
type ServiceImport struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              ServiceImportSpec   `json:"spec"`
	Status            ServiceImportStatus `json:"status"`
}

// ServiceImportSpec is the part of a [ServiceImport] that all clusters have in common, but for the addresses.
type ServiceImportSpec struct {
	Ports                 []ServicePort                        `json:"ports"` // not nil
	IPs                   []string                             `json:"ips,omitempty"`
	Type                  string                               `json:"type"` // wire.ServiceExportClusterSetIP or wire.ServiceExportHeadless
	SessionAffinity       corev1.ServiceAffinity               `json:"sessionAffinity,omitempty"`
	SessionAffinityConfig *corev1.SessionAffinityConfig        `json:"sessionAffinityConfig,omitempty"`
	IPFamilies            []corev1.IPFamily                    `json:"ipFamilies,omitempty"`
	InternalTrafficPolicy *corev1.ServiceInternalTrafficPolicy `json:"internalTrafficPolicy,omitempty"`
	TrafficDistribution   *string                              `json:"trafficDistribution,omitempty"`
}

// ServicePort is a port of an imported service.
type ServicePort struct {
	Name        string          `json:"name,omitempty"`
	Protocol    corev1.Protocol `json:"protocol,omitempty"`
	AppProtocol *string         `json:"appProtocol,omitempty"`
	Port        int32           `json:"port"`
}

// ServiceImportStatus says which clusters export the service, and how far it can be used.
type ServiceImportStatus struct {
	EndpointSliceObjects string             `json:"endpointSliceObjects,omitempty"` // [SlicesPresent] or [SlicesAbsent]
	Clusters             []ClusterStatus    `json:"clusters,omitempty"`             // by name
	Conditions           []metav1.Condition `json:"conditions,omitempty"`
}

// Whether there are EndpointSlices of the backends of an imported service (mcs.md B).
const (
	SlicesPresent = "Present"
	SlicesAbsent  = "Absent"
)

// ClusterStatus is a cluster that exports the service.
type ClusterStatus struct {
	Cluster string `json:"cluster"`
}
