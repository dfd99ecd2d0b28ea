package local

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The following types are the custom resources that are read, with only the fields that are used. The names are those
// of their definitions.

// CiliumNode is the object of a node's Cilium agent about the node (cilium.io/v2).
type CiliumNode struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              CiliumNodeSpec `json:"spec"`
}

// CiliumNodeSpec is the part of a [CiliumNode] that other clusters read.
type CiliumNodeSpec struct {
	BootID    string              `json:"bootid"`
	Addresses []CiliumNodeAddress `json:"addresses"`
	IPAM      struct {
		PodCIDRs []string `json:"podCIDRs"`
		Pools    struct {
			Allocated []struct {
				CIDRs []string `json:"cidrs"`
			} `json:"allocated"`
		} `json:"pools"` // of the mode multi-pool, which has no podCIDRs
	} `json:"ipam"`
	HealthAddressing struct {
		IPv4 string `json:"ipv4"`
		IPv6 string `json:"ipv6"`
	} `json:"health"`
	IngressAddressing struct {
		IPv4 string `json:"ipv4"`
		IPv6 string `json:"ipv6"`
	} `json:"ingress"`
	Encryption struct {
		Key int `json:"key"`
	} `json:"encryption"`
}

// CiliumNodeAddress is one address of a node; the types are those of wire.md §1.2.
type CiliumNodeAddress struct {
	Type string `json:"type"`
	IP   string `json:"ip"`
}

// CiliumEndpoint is the object of a Cilium agent about a pod (cilium.io/v2). It has the namespace and the name of the
// pod.
type CiliumEndpoint struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Status            CiliumEndpointStatus `json:"status"`
}

// CiliumEndpointStatus is the part of a [CiliumEndpoint] that other clusters read.
type CiliumEndpointStatus struct {
	ID       int64             `json:"id"` // of the endpoint on its node; 0 is none
	Identity *EndpointIdentity `json:"identity"`
	EndpointProperties
}

// EndpointIdentity is the identity of a pod.
type EndpointIdentity struct {
	ID int64 `json:"id"`
}

// EndpointProperties are the fields that [CiliumEndpoint] and [CiliumEndpointSlice] have in common.
type EndpointProperties struct {
	Networking *struct {
		Addressing []struct {
			IPv4 string `json:"ipv4"`
			IPv6 string `json:"ipv6"`
		} `json:"addressing"`
		NodeIP string `json:"node"`
	} `json:"networking"`
	Encryption struct {
		Key int `json:"key"`
	} `json:"encryption"`
	NamedPorts []struct {
		Name     string `json:"name"`
		Port     uint16 `json:"port"`
		Protocol string `json:"protocol"`
	} `json:"named-ports"`
	ServiceAccount string `json:"service-account"`
}

// CiliumIdentity is a set of labels with its number from Cilium (cilium.io/v2); its name is the number.
type CiliumIdentity struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	SecurityLabels    map[string]string `json:"security-labels"`
}
