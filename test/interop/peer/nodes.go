package main

import (
	"net"
	"net/netip"

	"github.com/cilium/cilium/pkg/cidr"
	"github.com/cilium/cilium/pkg/kvstore/store"
	"github.com/cilium/cilium/pkg/node/addressing"
	nodestore "github.com/cilium/cilium/pkg/node/store"
	nodetypes "github.com/cilium/cilium/pkg/node/types"
	"github.com/cilium/cilium/pkg/source"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

func nodes() kind {
	return kind{
		name:   model.Nodes,
		prefix: nodestore.NodeStorePrefix,
		encode: func(o *model.Objects) []store.Key { return newKeys(o.Nodes, newNode) },
		creator: func(e model.Expect) store.KeyCreator {
			return nodestore.ValidatingKeyCreator(nodestore.ClusterNameValidator(e.Cluster),
				nodestore.NameValidator(), nodestore.ClusterIDValidator(&e.ClusterID))
		},
		collect: func(_ model.Expect, key store.Key, into *model.Objects) error {
			into.Nodes = append(into.Nodes, modelNode(&key.(*nodestore.ValidatingNode).Node))
			return nil
		},
	}
}

func newNode(n model.Node) *nodetypes.Node {
	node := &nodetypes.Node{
		Name: n.Name, Cluster: n.Cluster, ClusterID: n.ClusterID,
		IPv4AllocCIDR:           newCIDR(n.IPv4AllocCIDR),
		IPv4SecondaryAllocCIDRs: newCIDRs(n.IPv4SecondaryAllocCIDRs),
		IPv6AllocCIDR:           newCIDR(n.IPv6AllocCIDR),
		IPv6SecondaryAllocCIDRs: newCIDRs(n.IPv6SecondaryAllocCIDRs),
		IPv4HealthIP:            n.IPv4HealthIP.AsSlice(),
		IPv6HealthIP:            n.IPv6HealthIP.AsSlice(),
		IPv4IngressIP:           n.IPv4IngressIP.AsSlice(),
		IPv6IngressIP:           n.IPv6IngressIP.AsSlice(),
		Source:                  source.Source(n.Source),
		EncryptionKey:           n.EncryptionKey,
		Labels:                  n.Labels,
		Annotations:             n.Annotations,
		WireguardPubKey:         n.WireguardPubKey,
		BootID:                  n.BootID,
	}
	for _, a := range n.Addresses {
		node.IPAddresses = append(node.IPAddresses,
			nodetypes.Address{Type: addressing.AddressType(a.Type), IP: a.IP.AsSlice()})
	}
	return node
}

func modelNode(n *nodetypes.Node) model.Node {
	node := model.Node{
		Name: n.Name, Cluster: n.Cluster, ClusterID: n.ClusterID,
		IPv4AllocCIDR:           modelCIDR(n.IPv4AllocCIDR),
		IPv4SecondaryAllocCIDRs: modelCIDRs(n.IPv4SecondaryAllocCIDRs),
		IPv6AllocCIDR:           modelCIDR(n.IPv6AllocCIDR),
		IPv6SecondaryAllocCIDRs: modelCIDRs(n.IPv6SecondaryAllocCIDRs),
		IPv4HealthIP:            modelIP(n.IPv4HealthIP),
		IPv6HealthIP:            modelIP(n.IPv6HealthIP),
		IPv4IngressIP:           modelIP(n.IPv4IngressIP),
		IPv6IngressIP:           modelIP(n.IPv6IngressIP),
		Source:                  string(n.Source),
		EncryptionKey:           n.EncryptionKey,
		Labels:                  n.Labels,
		Annotations:             n.Annotations,
		WireguardPubKey:         n.WireguardPubKey,
		BootID:                  n.BootID,
	}
	for _, a := range n.IPAddresses {
		node.Addresses = append(node.Addresses, model.NodeAddress{Type: string(a.Type), IP: modelIP(a.IP)})
	}
	return node
}

func newCIDR(p netip.Prefix) *cidr.CIDR {
	if !p.IsValid() {
		return nil
	}
	return cidr.NewCIDR(&net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())})
}

func newCIDRs(prefixes []netip.Prefix) []*cidr.CIDR {
	var cidrs []*cidr.CIDR
	for _, p := range prefixes {
		cidrs = append(cidrs, newCIDR(p))
	}
	return cidrs
}

// modelCIDR leaves out bits of the host, as those do who use the prefix.
func modelCIDR(c *cidr.CIDR) netip.Prefix {
	if c == nil || c.IPNet == nil {
		return netip.Prefix{}
	}
	addr := modelIP(c.IP)
	ones, bits := c.Mask.Size()
	if bits != addr.BitLen() {
		return netip.Prefix{} // no mask of this family
	}
	return netip.PrefixFrom(addr, ones).Masked()
}

func modelCIDRs(cidrs []*cidr.CIDR) []netip.Prefix {
	var prefixes []netip.Prefix
	for _, c := range cidrs {
		prefixes = append(prefixes, modelCIDR(c))
	}
	return prefixes
}

// modelIP unmaps: the text on the wire makes no difference.
func modelIP(ip net.IP) netip.Addr {
	addr, _ := netip.AddrFromSlice(ip)
	return addr.Unmap()
}
