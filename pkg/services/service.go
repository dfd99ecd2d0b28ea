// Package services keeps the services of every cluster, and the global services that they form together.
//
// A cluster may export a service in two forms, and usually does in both: as an entry of the older form, a [Service]
// (wire.md §1.3), and as endpoint slices, a [Slice] each (wire.md §1.4). Together they form the cluster's part in the
// service, again a [Service]. The rule is: the older entry decides whether the service exists, whether it is shared,
// and which addresses are its backends; the slices add details about these. Without such an entry, the endpoints of the
// slices are the backends.
//
// A [Global] is the merged service of one namespace and name: the parts of all clusters that have it. [Merge] is the
// pure function that makes it from the parts (wire.md §4.4); the result depends on the parts alone, not on the order of
// their arrival. [Global.Selection] describes to which of them Cilium sends traffic now; backends.Choose is the choice
// for consumers of the view.
//
// An [Export] is the data of a cluster about a service that it exports through the MCS API (wire.md §1.5). It is kept
// to find disagreements between clusters, and is not used in merging.
//
// [Services] owns the tables of services, of slices, of exports and of global services. It changes them in one write
// transaction for each batch, merges each service that the batch touches once, makes only the parts of the clusters
// that changed, and does not write unchanged objects. A [BackendUse] is how the backends of a cluster are used: demoted
// or withdrawn ([Services.SetUse]) where others have usable ones, or withheld ([Services.Withhold]) in any case.
// Backends of remote clusters may break a rule ([Services.JudgeBackends]): they are counted, and excluded from the
// parts if the rule is enforced. These are filters on merging; the tables of services and slices do not change.
//
// Concurrency: Apply, ApplySlices, ApplyExports, SetUse, Withhold and JudgeAgain may be called by several goroutines;
// transactions queue. Readers take snapshots of the tables and never wait. Only New can fail: invalid data was refused
// when it was decoded.
package services

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Service is one service of one cluster: the entry of the older form, or the cluster's part in a global service. It is
// immutable once it was passed to [Services.Apply]. Cluster, Namespace and Name identify it.
type Service struct {
	Cluster         string
	ClusterID       uint32
	Source          wire.Source // where this process read it
	Shared          bool        // false: as if the cluster did not export it
	IncludeExternal bool        // of a local service: it uses other clusters' backends; not used for a remote one
	Sliced          bool        // of a part: it comes from endpoint slices alone
	Use             BackendUse  // of a part: how its backends are used ([Services.SetUse], [Services.Withhold])
	Namespace, Name string
	Ports           []Port       // of the service itself, which clients use; sorted, no duplicates; nil if its cluster does not export them
	Addresses       []netip.Addr // of a local service: its own (cluster IPs), sorted
	Backends        []Backend    // sorted by address, one for each
	Labels          map[string]string
	Affinity        wire.Affinity // of a local service; it is never on the wire
	strays          *[]Stray      // of a part; nil for none, which is usual
}

// Backend is one endpoint. Every backend in an entry of the older form is ready or serving; its conditions and its node
// are known only from endpoint slices.
type Backend struct {
	Conditions
	IP       netip.Addr // an IPv4-mapped one is stored as IPv4
	Ports    []Port     // sorted, no duplicates; may be shared with other backends
	Hostname string     // empty when it has none
	Zone     string     // empty when it has none
	Node     string     // empty when it is not known
}

// Port is one port of a backend.
type Port struct {
	Name     string // empty for the unnamed port
	Protocol string // TCP, UDP, SCTP, or any other text that was written
	Port     uint16
}

// Key is "cluster/namespace/name".
func (s *Service) Key() string { return key(s.Cluster, s.Namespace, s.Name) }

// FullName is "namespace/name", which the parts of a global service have in common.
func (s *Service) FullName() string { return fullName(s.Namespace, s.Name) }

// Local reports whether the service is one of the local cluster, and not read from a remote.
func (s *Service) Local() bool { return s.Source != wire.SourceClusterMesh }

// Offers reports whether the cluster provides its backends to the mesh: a remote one when it shares the service, the
// local one always (wire.md §4.4).
func (s *Service) Offers() bool { return s.Shared || s.Local() }

// Backend finds the backend with this address.
func (s *Service) Backend(ip netip.Addr) (Backend, bool) { return find(s.Backends, ip.Unmap()) }

func find(sorted []Backend, ip netip.Addr) (b Backend, found bool) {
	i, found := slices.BinarySearchFunc(sorted, ip, func(b Backend, ip netip.Addr) int { return b.IP.Compare(ip) })
	if found {
		b = sorted[i]
	}
	return b, found
}

// Equal reports whether both have the same contents.
func (s *Service) Equal(o *Service) bool {
	return s == o ||
		s.Cluster == o.Cluster && s.ClusterID == o.ClusterID && s.Source == o.Source &&
			s.Shared == o.Shared && s.IncludeExternal == o.IncludeExternal &&
			s.Sliced == o.Sliced && s.Use == o.Use &&
			s.Namespace == o.Namespace && s.Name == o.Name && s.Affinity == o.Affinity &&
			slices.Equal(s.Ports, o.Ports) && slices.Equal(s.Addresses, o.Addresses) && slices.EqualFunc(s.Backends, o.Backends, Backend.Equal) &&
			maps.Equal(s.Labels, o.Labels) && slices.Equal(s.Strays(), o.Strays())
}

// Equal reports whether both have the same contents.
func (b Backend) Equal(o Backend) bool {
	return b.IP == o.IP && b.Conditions == o.Conditions && b.Hostname == o.Hostname &&
		b.Zone == o.Zone && b.Node == o.Node && slices.Equal(b.Ports, o.Ports)
}

func key(cluster, namespace, name string) string { return cluster + "/" + namespace + "/" + name }

func fullName(namespace, name string) string { return namespace + "/" + name }
