// Package nodes keeps the nodes of every cluster in one table, and derives the addresses and networks that each node
// claims.
//
// A [Node] is the compact, immutable form of the entry that a cluster publishes about one of its machines (wire.md
// §1.2). [Nodes] owns the table: the wiring passes it batches of changes, each batch becomes one write transaction, and
// an unchanged node is not written. [Node.Claims] is the pure function of wire.md §4.3; the wiring passes its results
// to the IP cache.
//
// Concurrency: Apply may be called by several goroutines; transactions queue. Readers take snapshots of the table and
// never wait. Only New can fail: invalid nodes were refused when they were decoded.
package nodes

import (
	"maps"
	"net"
	"net/netip"
	"slices"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Address is one address of a node.
type Address struct {
	Type string     // one of wire's, or any other text (wire.md §1.2)
	IP   netip.Addr // always valid; an IPv4-mapped one is stored as IPv4
}

// Node is one machine of one cluster. It is immutable once it was passed to [Nodes.Apply]. Cluster and Name identify
// it.
type Node struct {
	Cluster   string
	ClusterID uint32
	Name      string

	Addresses  []Address      // in the order of the writer, which decides the node IP
	PodCIDRs   []netip.Prefix // masked; the primary ones before the further ones, IPv4 first
	HealthIPs  []netip.Addr
	IngressIPs []netip.Addr

	EncryptionKey      uint8 // IPsec key index or WireGuard marker; 0 is none
	WireguardPublicKey string
	BootID             string

	Labels      map[string]string // nil when there are none
	Annotations map[string]string // nil when there are none

	Source wire.Source // where this process read it; the value that the writer gave is not used
}

// String returns a description such as "worker-1 of east: 172.16.8.1".
func (n *Node) String() string {
	text := n.Name + " of " + n.Cluster
	for i, a := range n.Addresses {
		text += [...]string{": ", ", "}[min(i, 1)] + a.IP.String()
	}
	return text
}

// FromWire converts a decoded node. It leaves out invalid addresses and networks (an empty IP, a CIDR with an empty
// or non-contiguous mask). The maps are shared with n.
func FromWire(n *wire.Node, source wire.Source) *Node {
	out := &Node{
		Cluster: n.Cluster, ClusterID: n.ClusterID, Name: n.Name, Source: source,
		Addresses: addresses(n.IPAddresses),
		HealthIPs: validAddrs(n.IPv4HealthIP, n.IPv6HealthIP), IngressIPs: validAddrs(n.IPv4IngressIP, n.IPv6IngressIP),
		EncryptionKey: n.EncryptionKey, WireguardPublicKey: n.WireguardPubKey, BootID: n.BootID,
		Labels: unlessEmpty(n.Labels), Annotations: unlessEmpty(n.Annotations),
	}
	out.PodCIDRs = appendCIDR(out.PodCIDRs, n.IPv4AllocCIDR)
	out.PodCIDRs = appendCIDRs(out.PodCIDRs, n.IPv4SecondaryAllocCIDRs...)
	out.PodCIDRs = appendCIDR(out.PodCIDRs, n.IPv6AllocCIDR)
	out.PodCIDRs = appendCIDRs(out.PodCIDRs, n.IPv6SecondaryAllocCIDRs...)
	return out
}

// Key returns the node's name in the mesh, "cluster/name".
func (n *Node) Key() string { return key(n.Cluster, n.Name) }

func key(cluster, name string) string { return cluster + "/" + name }

// Equal reports whether both have the same contents.
func (n *Node) Equal(o *Node) bool {
	return n == o ||
		n.Cluster == o.Cluster && n.ClusterID == o.ClusterID && n.Name == o.Name &&
			n.EncryptionKey == o.EncryptionKey &&
			n.WireguardPublicKey == o.WireguardPublicKey &&
			n.BootID == o.BootID && n.Source == o.Source &&
			slices.Equal(n.Addresses, o.Addresses) &&
			slices.Equal(n.PodCIDRs, o.PodCIDRs) &&
			slices.Equal(n.HealthIPs, o.HealthIPs) &&
			slices.Equal(n.IngressIPs, o.IngressIPs) &&
			maps.Equal(n.Labels, o.Labels) &&
			maps.Equal(n.Annotations, o.Annotations)
}

func addresses(from []wire.NodeAddress) []Address {
	var out []Address
	for i := range from {
		if ip := from[i].Addr(); ip.IsValid() {
			if out == nil {
				out = make([]Address, 0, len(from)-i)
			}
			out = append(out, Address{Type: addressType(from[i].Type), IP: ip})
		}
	}
	return out
}

// addressType returns the constant for a known type, so that nodes do not each
// hold their own copy of the text.
func addressType(t string) string {
	switch t {
	case wire.AddressInternalIP:
		return wire.AddressInternalIP
	case wire.AddressExternalIP:
		return wire.AddressExternalIP
	case wire.AddressCiliumInternalIP:
		return wire.AddressCiliumInternalIP
	}
	return t
}

func validAddrs(from ...net.IP) []netip.Addr {
	var out []netip.Addr
	for _, ip := range from {
		if a, ok := netip.AddrFromSlice(ip); ok {
			out = append(out, a.Unmap())
		}
	}
	return out
}

func appendCIDR(to []netip.Prefix, c *wire.CIDR) []netip.Prefix {
	if c == nil {
		return to
	}
	return appendCIDRs(to, *c)
}

func appendCIDRs(to []netip.Prefix, from ...wire.CIDR) []netip.Prefix {
	for _, c := range from {
		if p, ok := c.Prefix(); ok {
			to = append(to, p)
		}
	}
	return to
}

func unlessEmpty(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	return m
}

// The approximate memory of the parts of a node, in bytes, with the entries that follow from them: claims on
// addresses, and networks that are compared with those of others.
const (
	costNode    = 1024
	costAddress = 512
	costNetwork = 1024
	costLabel   = 64 // in addition to its text
)

// Cost returns the approximate memory of a node in bytes, with the entries that follow from it in the tables.
func (n *Node) Cost() int {
	cost := costNode + costAddress*(len(n.Addresses)+len(n.HealthIPs)+len(n.IngressIPs)) + costNetwork*len(n.PodCIDRs)
	for _, texts := range []map[string]string{n.Labels, n.Annotations} {
		for key, value := range texts {
			cost += costLabel + len(key) + len(value)
		}
	}
	return cost
}
