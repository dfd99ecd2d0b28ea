package local

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ServiceExport marks the Service of the same name as exported (multicluster.x-k8s.io).
type ServiceExport struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		ExportedLabels      map[string]string `json:"exportedLabels"`
		ExportedAnnotations map[string]string `json:"exportedAnnotations"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// ServiceImport is a service of the clusterset as seen by one cluster (multicluster.x-k8s.io).
type ServiceImport struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              ServiceImportSpec   `json:"spec"`
	Status            ServiceImportStatus `json:"status"`
}

// ServiceImportSpec is the part of a [ServiceImport] that, except for the addresses, is the same in all clusters.
type ServiceImportSpec struct {
	Ports                 []ServicePort                        `json:"ports"` // not nil
	IPs                   []string                             `json:"ips,omitempty"`
	Type                  string                               `json:"type"` // ClusterSetIP or Headless
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

// ServiceImportStatus has the clusters that export the service, and the conditions of its use.
type ServiceImportStatus struct {
	EndpointSliceObjects string             `json:"endpointSliceObjects,omitempty"` // Present or Absent
	Clusters             []ClusterStatus    `json:"clusters,omitempty"`             // by name
	Conditions           []metav1.Condition `json:"conditions,omitempty"`
}

// ClusterStatus is a cluster that exports the service.
type ClusterStatus struct {
	Cluster string `json:"cluster"`
}
