package nodes

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Role is the reason why a node claims a prefix.
type Role uint8

// The roles.
const (
	RoleAddress Role = iota // an address of the machine itself
	RolePodCIDR             // the pods that it hosts: a route until the pods' own entries arrive
	RoleHealth              // its health endpoint
	RoleIngress             // its ingress listener
)

// String returns the name of the role for users.
func (r Role) String() string {
	names := [...]string{"address", "pod-cidr", "health", "ingress"}
	if int(r) >= len(names) {
		return "unknown"
	}
	return names[r]
}

// Identity returns the reserved identity for the addresses of a claim with the role (wire.md §4.3). Pod CIDRs have the
// identity world, for both families.
func (r Role) Identity() uint32 {
	switch r {
	case RoleAddress:
		return wire.IdentityRemoteNode
	case RoleHealth:
		return wire.IdentityHealth
	case RoleIngress:
		return wire.IdentityIngress
	default:
		return wire.IdentityWorld
	}
}

// Claim is a prefix that a node claims.
type Claim struct {
	Prefix netip.Prefix // masked; a single address for all roles except pod CIDRs
	Role   Role
	// HostIP is the tunnel endpoint ([Node.HostIP]); invalid when there is none: for the
	// machine's own addresses, except the one inside the pod network.
	HostIP netip.Addr
	// EncryptionKey is the node's key for the addresses behind the tunnel, and 0 for the machine's own addresses.
	EncryptionKey uint8
}

// Claims lists the claims of the node (wire.md §4.3), sorted by role and prefix, each role and prefix once.
func (n *Node) Claims() []Claim {
	out := make([]Claim, 0, len(n.Addresses)+len(n.PodCIDRs)+len(n.HealthIPs)+len(n.IngressIPs))
	host4, host6 := n.HostIP(false), n.HostIP(true)
	hostOf := func(a netip.Addr) netip.Addr {
		if a.Is4() {
			return host4
		}
		return host6
	}
	for _, a := range n.Addresses {
		if isName(a.Type) {
			continue
		}
		c := Claim{Prefix: host(a.IP), Role: RoleAddress}
		if a.Type == wire.AddressCiliumInternalIP {
			c.HostIP = hostOf(a.IP)
		}
		out = append(out, c)
	}
	tunnelled := func(p netip.Prefix, r Role) {
		out = append(out, Claim{Prefix: p, Role: r, HostIP: hostOf(p.Addr()), EncryptionKey: n.EncryptionKey})
	}
	for _, p := range n.PodCIDRs {
		tunnelled(p, RolePodCIDR)
	}
	for _, a := range n.HealthIPs {
		tunnelled(host(a), RoleHealth)
	}
	for _, a := range n.IngressIPs {
		tunnelled(host(a), RoleIngress)
	}
	slices.SortFunc(out, compareClaims)
	return slices.CompactFunc(out, func(a, b Claim) bool { return a.Role == b.Role && a.Prefix == b.Prefix })
}

// compareClaims sorts by role and prefix. Of two claims with the same role and prefix, the one with a tunnel endpoint
// comes first.
func compareClaims(a, b Claim) int {
	return cmp.Or(
		cmp.Compare(a.Role, b.Role),
		a.Prefix.Compare(b.Prefix),
		b.HostIP.Compare(a.HostIP),
	)
}

// HostIP returns the address that other machines use to reach the node, as a tunnel endpoint for IPv6 or IPv4 traffic:
// of that family the first InternalIP, else the last ExternalIP, else the first other one, never the address inside the
// pod network (wire.md §4.3). If there is none, it returns the address of the other family. It is invalid when the node
// has none at all.
func (n *Node) HostIP(ipv6 bool) netip.Addr {
	return cmp.Or(n.familyIP(ipv6), n.familyIP(!ipv6))
}

func (n *Node) familyIP(ipv6 bool) netip.Addr {
	var external, other netip.Addr
	for _, a := range n.Addresses {
		switch {
		case a.IP.Is6() != ipv6, a.Type == wire.AddressCiliumInternalIP, isName(a.Type):
		case a.Type == wire.AddressInternalIP:
			return a.IP
		case a.Type == wire.AddressExternalIP:
			external = a.IP
		case !other.IsValid():
			other = a.IP
		}
	}
	return cmp.Or(external, other)
}

// isName reports whether addresses of the type are host names.
func isName(t string) bool {
	return t == wire.AddressHostname || t == wire.AddressInternalDNS || t == wire.AddressExternalDNS
}

func host(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }
