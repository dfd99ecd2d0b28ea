package api

import (
	"iter"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// ByResource holds one value for each resource of a cluster.
type ByResource[T any] struct {
	Nodes          T `json:"nodes"`
	Services       T `json:"services"`
	EndpointSlices T `json:"endpointSlices"`
	ServiceExports T `json:"serviceExports"`
	Identities     T `json:"identities"`
	IPs            T `json:"ips"`
}

// Of returns a pointer to the value of a resource; nil for an unknown one.
func (b *ByResource[T]) Of(r wire.Resource) *T {
	switch r {
	case wire.Nodes:
		return &b.Nodes
	case wire.Services:
		return &b.Services
	case wire.EndpointSlices:
		return &b.EndpointSlices
	case wire.ServiceExports:
		return &b.ServiceExports
	case wire.Identities:
		return &b.Identities
	case wire.IPs:
		return &b.IPs
	}
	return nil
}

// All yields every resource with its value, which may be changed in place.
func (b *ByResource[T]) All() iter.Seq2[wire.Resource, *T] {
	return func(yield func(wire.Resource, *T) bool) {
		for _, r := range wire.Resources() {
			if !yield(r, b.Of(r)) {
				return
			}
		}
	}
}

// Node is a machine of a cluster.
type Node struct {
	Cluster            string            `json:"cluster"`
	ClusterID          uint32            `json:"clusterID"`
	Name               string            `json:"name"`
	Addresses          []NodeAddress     `json:"addresses"`
	PodCIDRs           []string          `json:"podCIDRs"`
	HealthIPs          []string          `json:"healthIPs"`
	IngressIPs         []string          `json:"ingressIPs"`
	EncryptionKey      uint8             `json:"encryptionKey" doc:"0 means none."`
	WireguardPublicKey string            `json:"wireguardPublicKey"`
	Identity           uint32            `json:"identity" doc:"The identity of its addresses."`
	BootID             string            `json:"bootID"`
	Labels             map[string]string `json:"labels"`
	Annotations        map[string]string `json:"annotations"`
}

// NodeAddress is one address of a node.
type NodeAddress struct {
	Type string `json:"type"`
	IP   string `json:"ip"`
}

// Service is a service with the parts of all clusters.
type Service struct {
	Namespace string           `json:"namespace"`
	Name      string           `json:"name"`
	Global    bool             `json:"global" doc:"Whether at least one cluster shares it."`
	Affinity  string           `json:"affinity" enum:"none,local,remote"`
	Clusters  []ServiceCluster `json:"clusters" doc:"All clusters that publish it."`
	Backends  []Backend        `json:"backends" doc:"The backends, one for each cluster and address."`
}

// ServiceCluster is the part that one cluster has in a service.
type ServiceCluster struct {
	Cluster         string `json:"cluster"`
	Shared          bool   `json:"shared"`
	IncludeExternal bool   `json:"includeExternal"`
	Backends        int    `json:"backends" doc:"How many backends it provides."`
	Reason          string `json:"reason" doc:"Why the agent uses its backends, or not."`
}

// Backend is one address behind a service.
type Backend struct {
	IP          string `json:"ip"`
	Cluster     string `json:"cluster"`
	Ports       []Port `json:"ports"`
	Hostname    string `json:"hostname"`
	Zone        string `json:"zone"`
	Node        string `json:"node" doc:"Empty when its cluster exports no endpoint slices."`
	Ready       bool   `json:"ready" doc:"Whether the cluster publishes it as ready for new connections."`
	Serving     bool   `json:"serving" doc:"Whether it serves connections, also while it terminates."`
	Terminating bool   `json:"terminating" doc:"Whether it terminates."`
	Preferred   bool   `json:"preferred" doc:"Whether the affinity prefers it."`
	Selected    bool   `json:"selected" doc:"Whether the own cluster's traffic goes to it now."`
	Local       bool   `json:"local" doc:"Whether it belongs to the own cluster."`
}

// Port is a port of a backend.
type Port struct {
	Name     string `json:"name"`
	Protocol string `json:"protocol"`
	Port     uint16 `json:"port"`
}

// ServiceExport is the data of a cluster about a service that it exports through the MCS API.
type ServiceExport struct {
	Cluster                       string    `json:"cluster"`
	Namespace                     string    `json:"namespace"`
	Name                          string    `json:"name"`
	Type                          string    `json:"type" enum:"ClusterSetIP,Headless"`
	SessionAffinity               string    `json:"sessionAffinity" enum:"None,ClientIP"`
	SessionAffinityTimeoutSeconds int       `json:"sessionAffinityTimeoutSeconds" doc:"0 without affinity."`
	Ports                         []Port    `json:"ports" doc:"The ports of the service."`
	Created                       time.Time `json:"created" doc:"If exports disagree, the oldest one decides."`
}

// Identity is a set of labels with its number.
type Identity struct {
	ID        uint32            `json:"id"`
	Cluster   string            `json:"cluster" doc:"Empty for a reserved identity."`
	ClusterID uint32            `json:"clusterID"`
	Labels    map[string]string `json:"labels"`
}

// IP is the winning claim of a prefix.
type IP struct {
	Prefix        string `json:"prefix" doc:"Always with its length."`
	Cluster       string `json:"cluster"`
	ClusterID     uint32 `json:"clusterID"`
	Identity      uint32 `json:"identity"`
	HostIP        string `json:"hostIP" doc:"The IP address of the node behind which the prefix is; empty when the entry has none."`
	EncryptionKey uint8  `json:"encryptionKey" doc:"0 means none."`
	Namespace     string `json:"namespace"`
	Pod           string `json:"pod"`
	Source        string `json:"source"`
	Kind          string `json:"kind" enum:"endpoint,node,pod-cidr,health,ingress"`
	Claims        int    `json:"claims" doc:"How many claims the prefix has."`
}

// Health is the state that a module, a background task or a cluster connection reports.
type Health struct {
	Name                string     `json:"name"`
	Cluster             string     `json:"cluster" doc:"Set for a cluster connection."`
	State               string     `json:"state" enum:"ok,degraded,stopped,unknown"`
	Message             string     `json:"message"`
	LastSuccess         *time.Time `json:"lastSuccess"`
	LastFailure         *time.Time `json:"lastFailure"`
	ConsecutiveFailures int        `json:"consecutiveFailures"`
}

// Settings are the settings in force, by the names of their flags, in the syntax of the flags. Secrets are left out.
type Settings map[string]string

// Conflict is a disagreement between clusters, or an object that more than one cluster claims.
type Conflict struct {
	Kind     string    `json:"kind" enum:"cluster-id,cluster-name,pod-cidr,ip,node-ip,claim,identity,service-port,service-affinity"`
	Code     string    `json:"code" doc:"The stable code of the finding."`
	Subject  string    `json:"subject" doc:"The subject, unique within the kind: a prefix, a cluster ID or name, the name of a service, CLUSTER/ID of an identity, CLUSTER/RULE of claims."`
	Clusters []string  `json:"clusters" doc:"The clusters that take part, the winner first."`
	Message  string    `json:"message" doc:"The finding and its remedy."`
	Rule     string    `json:"rule" doc:"Why the first cluster wins; empty when none wins."`
	Unlisted int       `json:"unlisted,omitempty" doc:"The number of conflicts of the kind that the list leaves out; present only in the item that reports it."`
	Since    time.Time `json:"since" doc:"When this agent first saw it."`
}

// Event is an event of the agent's recent history.
type Event struct {
	ID       uint64            `json:"id" doc:"The number of the event; it increases with each event of this process."`
	Time     time.Time         `json:"time"`
	Cluster  string            `json:"cluster" doc:"Empty when the event is not about one cluster."`
	Kind     string            `json:"kind" doc:"The kind of the event, such as cluster-connected or conflict."`
	Code     string            `json:"code" doc:"The stable code of the finding."`
	Message  string            `json:"message" doc:"The message of the event."`
	Resource string            `json:"resource" doc:"The list that contains the object, such as clusters; empty when the event is not about an object."`
	Name     string            `json:"name" doc:"The name of the object in that list."`
	Evidence map[string]string `json:"evidence" doc:"The values that the finding is based on."`
}
