package model

import (
	"net/netip"
	"strconv"
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
func Kinds() []Kind { return append([]Kind{ClusterConfigs}, Published()...) }

// Published are the kinds that a cluster publishes objects of.
func Published() []Kind {
	return []Kind{Nodes, Services, EndpointSlices, ServiceExports, Identities, Addresses}
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
	IPAddresses             []NodeAddress
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

// Zone is the zone of a backend, and the zones whose clients should use it.
type Zone struct {
	Zone     string
	ForZones []ForZone
}

// ForZone names a zone that something is meant for.
type ForZone struct{ Name string }

// EndpointSlice is a slice of a service's endpoints. A nil field is not set.
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
	Addresses                []string
	Conditions               Conditions
	Hostname, NodeName, Zone *string
	DeprecatedTopology       map[string]string
	Hints                    *Hints
}

// Conditions are those of an endpoint.
type Conditions struct{ Ready, Serving, Terminating *bool }

// Hints are the zones that an endpoint is meant for.
type Hints struct{ ForZones []ForZone }

// EndpointPort is a port of a slice.
type EndpointPort struct {
	Name, Protocol, AppProtocol *string
	Port                        *int32
}

// ServiceExport is an exported service. A nil field is not set.
type ServiceExport struct {
	Cluster, Namespace, Name string
	Labels, Annotations      map[string]string
	ExportCreationTimestamp  time.Time // whole seconds, UTC
	Ports                    []ServicePort
	Type                     string
	SessionAffinity          string
	SessionAffinityConfig    *AffinityConfig
	IPFamilies               []string
	InternalTrafficPolicy    *string
	TrafficDistribution      *string
}

// AffinityConfig is how long a client's affinity lasts.
type AffinityConfig struct{ ClientIP *ClientIP }

// ClientIP is the affinity of clients' addresses.
type ClientIP struct{ TimeoutSeconds *int32 }

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
	Identity       uint32     `also:"ID"`
	EncryptionKey  uint8      `also:"Key"`
	Metadata       string
	Namespace      string      `also:"K8sNamespace"`
	Pod            string      `also:"K8sPodName"`
	ServiceAccount string      `also:"K8sServiceAccount"`
	NamedPorts     []NamedPort `also:"Ports"`
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

// Named returns the objects by kind and by a name that no other object of the kind
// has, in all clusters.
func (o Objects) Named() map[Kind]map[string]any {
	return map[Kind]map[string]any{
		ClusterConfigs: named(o.ClusterConfigs, func(c ClusterConfig) string { return c.Cluster }),
		Nodes:          named(o.Nodes, func(n Node) string { return n.Cluster + "/" + n.Name }),
		Services:       named(o.Services, func(s Service) string { return s.Cluster + "/" + s.Namespace + "/" + s.Name }),
		EndpointSlices: named(o.EndpointSlices, func(s EndpointSlice) string { return s.Cluster + "/" + s.Namespace + "/" + s.Name }),
		ServiceExports: named(o.ServiceExports, func(e ServiceExport) string { return e.Cluster + "/" + e.Namespace + "/" + e.Name }),
		Identities:     named(o.Identities, func(i Identity) string { return i.Cluster + "/" + strconv.FormatUint(uint64(i.ID), 10) }),
		Addresses:      named(o.Addresses, Address.name),
	}
}

func named[T any](objects []T, name func(T) string) map[string]any {
	all := make(map[string]any, len(objects))
	for _, o := range objects {
		all[name(o)] = o
	}
	return all
}

// name tells an address from a prefix of full length, which are two objects.
func (a Address) name() string {
	if a.Host {
		return a.Cluster + "/" + a.Prefix.Addr().String()
	}
	return a.Cluster + "/" + a.Prefix.String()
}
