// Package services keeps the services of every cluster, and what they make
// together: the global services.
//
// A [Service] is what one cluster says of one service, in compact and immutable
// form (wire.md §1.3). A [Global] is what the mesh knows under one namespace and
// name: the parts of all clusters that have it. [Merge] is the pure rule that
// makes the second from the first (wire.md §4.4); it depends on the parts alone,
// not on the order in which they came. [Services] owns the two tables, changes
// both in one write transaction for each batch, merges each service that the
// batch touches once, and writes nothing for what it already has.
//
// Concurrency: Apply may be called by several goroutines, transactions queue.
// Readers take snapshots of the tables and never wait. Nothing here can fail: a
// service that is not acceptable was refused when it was decoded.
package services

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Service is one service of one cluster. It is immutable once it was handed to
// [Services.Apply]. Cluster, Namespace and Name identify it.
type Service struct {
	Cluster         string
	ClusterID       uint32
	Source          wire.Source // where we have it from
	Shared          bool        // false: as if the cluster did not export it
	IncludeExternal bool        // as written; what counts is the reader's own Service
	Namespace, Name string
	Backends        []Backend // sorted by address, one for each
	Labels          map[string]string
	Affinity        wire.Affinity // of a local service; it is never on the wire
}

// Backend is one endpoint that is ready or serving.
type Backend struct {
	IP       netip.Addr // an IPv4-mapped one is held as IPv4
	Ports    []Port     // sorted, no duplicates; may be shared with other backends
	Hostname string     // empty when it has none
	Zone     string     // empty when it has none
}

// Port is one port of a backend.
type Port struct {
	Name     string // empty for the unnamed port
	Protocol string // TCP, UDP or SCTP, or whatever was written
	Port     uint16
}

// Key is "cluster/namespace/name".
func (s *Service) Key() string { return key(s.Cluster, s.Namespace, s.Name) }

// FullName is "namespace/name", which is what the parts of a global service
// have in common.
func (s *Service) FullName() string { return fullName(s.Namespace, s.Name) }

// Local tells whether the service is one of the local cluster, described by
// itself rather than by a remote.
func (s *Service) Local() bool { return s.Source != wire.SourceClusterMesh }

// Backend finds the backend with this address.
func (s *Service) Backend(ip netip.Addr) (Backend, bool) {
	i, found := slices.BinarySearchFunc(s.Backends, ip.Unmap(), func(b Backend, ip netip.Addr) int { return b.IP.Compare(ip) })
	if !found {
		return Backend{}, false
	}
	return s.Backends[i], true
}

// Equal tells whether both say the same.
func (s *Service) Equal(o *Service) bool {
	return s == o ||
		s.Cluster == o.Cluster && s.ClusterID == o.ClusterID && s.Source == o.Source &&
			s.Shared == o.Shared && s.IncludeExternal == o.IncludeExternal &&
			s.Namespace == o.Namespace && s.Name == o.Name && s.Affinity == o.Affinity &&
			slices.EqualFunc(s.Backends, o.Backends, Backend.Equal) &&
			maps.Equal(s.Labels, o.Labels)
}

// Equal tells whether both say the same.
func (b Backend) Equal(o Backend) bool {
	return b.IP == o.IP && b.Hostname == o.Hostname && b.Zone == o.Zone && slices.Equal(b.Ports, o.Ports)
}

func key(cluster, namespace, name string) string { return cluster + "/" + namespace + "/" + name }

func fullName(namespace, name string) string { return namespace + "/" + name }
