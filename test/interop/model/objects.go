package model

import (
	"net/netip"
	"time"
)

// Kind is a kind of object.
type Kind string

// The kinds.
const (
	ClusterConfigs Kind = "clusterconfig"
	Nodes          Kind = "nodes"
	Services       Kind = "services"
	EndpointSlices Kind = "endpointslices"
	ServiceExports Kind = "serviceexports"
	Identities     Kind = "identities"
	Addresses      Kind = "ip"
)

// Kinds returns every kind.
func Kinds() []Kind {
	return []Kind{ClusterConfigs, Nodes, Services, EndpointSlices, ServiceExports, Identities, Addresses}
}

// Objects are objects of every kind.
type Objects struct {
	ClusterConfigs []ClusterConfig
	Nodes          []Node
	Services       []Service
	EndpointSlices []EndpointSlice
	ServiceExports []ServiceExport
	Identities     []Identity
	Addresses      []Address
}

// ClusterConfig is what a cluster says of itself.
type ClusterConfig struct {
	Cluster                  string // the key's last part
	ID                       uint32
	SyncedCanaries           bool
	Cached                   bool
	MaxConnectedClusters     uint32
	ServiceExportsEnabled    *bool // nil: the cluster does not know of them
	EndpointSlicesExportMode string
}

// Node is a node. An address or prefix that is invalid is not set.
type Node struct {
	Cluster, Name           string
	ClusterID               uint32
	Addresses               []NodeAddress
	IPv4AllocCIDR           netip.Prefix
	IPv4SecondaryAllocCIDRs []netip.Prefix
	IPv6AllocCIDR           netip.Prefix
	IPv6SecondaryAllocCIDRs []netip.Prefix
	IPv4HealthIP            netip.Addr
	IPv6HealthIP            netip.Addr
	IPv4IngressIP           netip.Addr
	IPv6IngressIP           netip.Addr
	Source                  string // the writer's; readers set their own
	EncryptionKey           uint8
	Labels, Annotations     map[string]string
	WireguardPubKey         string
	BootID                  string
}

// NodeAddress is an address of a node.
type NodeAddress struct {
	Type string
	IP   netip.Addr
}

// Service is a service with its backends.
type Service struct {
	Cluster, Namespace, Name string
	ClusterID                uint32
	Frontends, Backends      map[netip.Addr]Ports
	Hostnames                map[netip.Addr]string
	Zones                    map[netip.Addr]Zone
	Labels, Selector         map[string]string
	IncludeExternal, Shared  bool
}

// Ports are ports by name; the name may be empty.
type Ports map[string]L4

// L4 is a protocol with a port.
type L4 struct {
	Protocol string
	Port     uint16
}

// Zone is where a backend is and for whom it is meant.
type Zone struct {
	Zone     string
	ForZones []string
}

// EndpointSlice is a slice of a service's endpoints. What is nil is not set.
type EndpointSlice struct {
	Cluster, Namespace, Name string
	ClusterID                uint32
	Labels, Annotations      map[string]string
	AddressType              string
	Endpoints                []Endpoint
	Ports                    []EndpointPort
}

// Endpoint is an endpoint of a slice.
type Endpoint struct {
	Addresses                   []string
	Ready, Serving, Terminating *bool
	Hostname, NodeName, Zone    *string
	Topology                    map[string]string
	Hints                       *Hints
}

// Hints are the zones that an endpoint is meant for.
type Hints struct{ ForZones []string }

// EndpointPort is a port of a slice.
type EndpointPort struct {
	Name, Protocol, AppProtocol *string
	Port                        *int32
}

// ServiceExport is an exported service. What is nil is not set.
type ServiceExport struct {
	Cluster, Namespace, Name string
	Labels, Annotations      map[string]string
	Created                  time.Time // whole seconds, UTC
	Ports                    []ServicePort
	Type                     string
	SessionAffinity          string
	AffinityTimeout          *int32 // seconds, of clients' addresses
	IPFamilies               []string
	InternalTrafficPolicy    *string
	TrafficDistribution      *string
}

// ServicePort is a port of an exported service.
type ServicePort struct {
	Name, Protocol string
	AppProtocol    *string
	Port           int32
}

// Identity is a set of labels with its number.
type Identity struct {
	Cluster string // needed for its key in a cache; not part of its value
	ID      uint32
	Labels  []Label // by key, no key twice
}

// Label is a label of an identity.
type Label struct{ Source, Key, Value string }

// Address is an address or a prefix with its identity.
type Address struct {
	Cluster        string // needed for its key in a cache; not part of its value
	Prefix         netip.Prefix
	Host           bool       // an address, not a prefix of full length
	HostIP         netip.Addr // the node; invalid is none
	Identity       uint32
	EncryptionKey  uint8
	Metadata       string
	Namespace, Pod string
	ServiceAccount string
	NamedPorts     []NamedPort
}

// NamedPort is a port of a pod with a name.
type NamedPort struct {
	Name     string
	Port     uint16
	Protocol string
}

// ByKind returns the objects kind by kind, without kinds that there are none of.
func (o Objects) ByKind() []Objects {
	var parts []Objects
	for _, part := range []Objects{
		{ClusterConfigs: o.ClusterConfigs},
		{Nodes: o.Nodes},
		{Services: o.Services},
		{EndpointSlices: o.EndpointSlices},
		{ServiceExports: o.ServiceExports},
		{Identities: o.Identities},
		{Addresses: o.Addresses},
	} {
		if part.Len() > 0 {
			parts = append(parts, part)
		}
	}
	return parts
}

// Len returns the number of objects.
func (o Objects) Len() int {
	return len(o.ClusterConfigs) + len(o.Nodes) + len(o.Services) + len(o.EndpointSlices) +
		len(o.ServiceExports) + len(o.Identities) + len(o.Addresses)
}

// Add adds objects.
func (o *Objects) Add(more Objects) {
	o.ClusterConfigs = append(o.ClusterConfigs, more.ClusterConfigs...)
	o.Nodes = append(o.Nodes, more.Nodes...)
	o.Services = append(o.Services, more.Services...)
	o.EndpointSlices = append(o.EndpointSlices, more.EndpointSlices...)
	o.ServiceExports = append(o.ServiceExports, more.ServiceExports...)
	o.Identities = append(o.Identities, more.Identities...)
	o.Addresses = append(o.Addresses, more.Addresses...)
}
