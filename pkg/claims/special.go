package claims

import (
	"net/netip"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Range is a network that no pod and no node can have.
type Range struct {
	Prefix netip.Prefix
	Name   string // its purpose, with the document that defines it
}

// ranges has the networks of the IANA registries of special-purpose addresses that never leave a link or a host, that
// belong to no single machine, or that embed an IPv4 address, to which the rules for IPv4 do not apply. The single
// addresses are metadata services of clouds, which give credentials to every client. Networks that clusters do use for
// pods are not in ranges: shared address space (100.64.0.0/10), benchmarking (198.18.0.0/15), documentation, all unique
// local addresses (fc00::/7). Where ranges overlap, the narrower one is first.
var ranges = [...]Range{
	{netip.MustParsePrefix("0.0.0.0/8"), "this network (RFC 1122)"},
	{netip.MustParsePrefix("100.100.100.200/32"), "metadata of Alibaba Cloud"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback (RFC 1122)"},
	{netip.MustParsePrefix("168.63.129.16/32"), "metadata of Azure"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local (RFC 3927)"},
	{netip.MustParsePrefix("192.0.0.0/24"), "protocol assignments (RFC 6890), metadata of Oracle Cloud"},
	{netip.MustParsePrefix("192.88.99.0/24"), "6to4 relays (RFC 7526)"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast (RFC 5771)"},
	{netip.MustParsePrefix("255.255.255.255/32"), "broadcast (RFC 919)"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved (RFC 1112)"},
	{netip.MustParsePrefix("::/128"), "unspecified (RFC 4291)"},
	{netip.MustParsePrefix("::1/128"), "loopback (RFC 4291)"},
	{netip.MustParsePrefix("::/96"), "IPv4-compatible (RFC 4291)"},
	{netip.MustParsePrefix("::ffff:0:0/96"), "IPv4-mapped (RFC 4291)"},
	{netip.MustParsePrefix("::ffff:0:0:0/96"), "IPv4-translated (RFC 2765)"},
	{netip.MustParsePrefix("64:ff9b::/96"), "IPv4 through translation (RFC 6052)"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "IPv4 through translation (RFC 8215)"},
	{netip.MustParsePrefix("100::/64"), "discard-only (RFC 6666)"},
	{netip.MustParsePrefix("2001::/32"), "Teredo (RFC 4380)"},
	{netip.MustParsePrefix("2002::/16"), "6to4 (RFC 3056)"},
	{netip.MustParsePrefix("fd00:ec2::254/128"), "metadata of AWS"},
	{netip.MustParsePrefix("fd20:ce::254/128"), "metadata of Google Cloud"},
	{netip.MustParsePrefix("fe80::/10"), "link-local (RFC 4291)"},
	{netip.MustParsePrefix("ff00::/8"), "multicast (RFC 4291)"},
}

// has reports whether a prefix cannot be claimed because of the range. A network around a single address for special
// use can be claimed: clusters do use 100.64.0.0/10, or fd00::/16.
func (r Range) has(p netip.Prefix) bool {
	if r.Prefix.IsSingleIP() && !p.IsSingleIP() {
		return false
	}
	return r.Prefix.Overlaps(p)
}

// The shortest prefixes that can be the network of a cluster: 10.0.0.0/8, and for IPv6 a larger network than any
// registry gives to one organisation. Shorter ones are a default route, whole or in parts.
const (
	Shortest4 = 8
	Shortest6 = 16
)

// TooLarge reports whether a network is too large for a cluster: a default route, or a large part of one.
func TooLarge(p netip.Prefix) bool {
	return p.Bits() < byFamily(p.Addr(), Shortest4, Shortest6)
}

// byFamily returns a number of bits for IPv4 or for IPv6.
func byFamily(a netip.Addr, of4, of6 int) int {
	if a.Is4() {
		return of4
	}
	return of6
}

// Special reports whether no cluster may claim a prefix, and returns the range that forbids it. That prefix overlaps
// a network for special use, is a single address for special use, or is a default route or a large part of one. The
// prefix must be masked, and an IPv4 prefix must not be in the mapped form.
func Special(p netip.Prefix) (Range, bool) {
	if TooLarge(p) {
		return Range{p, "a default route, or a part of one that is no network of a cluster"}, true
	}
	for _, r := range ranges {
		if r.has(p) {
			return r, true
		}
	}
	return Range{}, false
}

// SpecialAddress is Special for a single address.
func SpecialAddress(a netip.Addr) (Range, bool) {
	a = a.WithZone("")
	return Special(netip.PrefixFrom(a, a.BitLen()))
}

// Privileged reports whether policies trust the reserved identity in a way that only the reader's own cluster can vouch
// for, or whether it stands for no single endpoint: a host, a node, the API server, the world, the aggregates. A remote
// publishes remote-node only for the addresses of its nodes (atNode). All others, which Cilium does publish for
// endpoints, are not privileged (wire.md §1.7, §2.3).
func Privileged(identity uint32, atNode bool) bool {
	switch identity {
	case wire.IdentityHost, wire.IdentityRemoteNode:
		return !atNode
	case wire.IdentityWorld, wire.IdentityWorldIPv4, wire.IdentityWorldIPv6, wire.IdentityKubeAPIServer,
		wire.IdentityAggregateCluster, wire.IdentityAggregateClusterMesh, wire.IdentityAggregateWorld, wire.IdentityAggregateRemoteNode:
		return true
	}
	return false
}
