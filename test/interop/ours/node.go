package ours

import (
	"net"
	"net/netip"

	"github.com/mesh-agent/mesh-agent/pkg/wire"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// ClusterConfig returns a cluster's configuration.
func ClusterConfig(c model.ClusterConfig) wire.ClusterConfig {
	return wire.ClusterConfig{ID: c.ID, Capabilities: wire.Capabilities{
		SyncedCanaries:           c.SyncedCanaries,
		Cached:                   c.Cached,
		MaxConnectedClusters:     c.MaxConnectedClusters,
		ServiceExportsEnabled:    c.ServiceExportsEnabled,
		EndpointSlicesExportMode: c.EndpointSlicesExportMode,
	}}
}

// ModelClusterConfig is the reverse of ClusterConfig.
func ModelClusterConfig(cluster string, c wire.ClusterConfig) model.ClusterConfig {
	return model.ClusterConfig{
		Cluster: cluster, ID: c.ID,
		SyncedCanaries:           c.Capabilities.SyncedCanaries,
		Cached:                   c.Capabilities.Cached,
		MaxConnectedClusters:     c.Capabilities.MaxConnectedClusters,
		ServiceExportsEnabled:    c.Capabilities.ServiceExportsEnabled,
		EndpointSlicesExportMode: c.Capabilities.EndpointSlicesExportMode,
	}
}

// Node returns a node.
func Node(n model.Node) *wire.Node {
	node := &wire.Node{
		Name: n.Name, Cluster: n.Cluster, ClusterID: n.ClusterID,
		IPv4AllocCIDR:           cidr(n.IPv4AllocCIDR),
		IPv4SecondaryAllocCIDRs: cidrs(n.IPv4SecondaryAllocCIDRs),
		IPv6AllocCIDR:           cidr(n.IPv6AllocCIDR),
		IPv6SecondaryAllocCIDRs: cidrs(n.IPv6SecondaryAllocCIDRs),
		IPv4HealthIP:            n.IPv4HealthIP.AsSlice(),
		IPv6HealthIP:            n.IPv6HealthIP.AsSlice(),
		IPv4IngressIP:           n.IPv4IngressIP.AsSlice(),
		IPv6IngressIP:           n.IPv6IngressIP.AsSlice(),
		Source:                  n.Source,
		EncryptionKey:           n.EncryptionKey,
		Labels:                  n.Labels,
		Annotations:             n.Annotations,
		WireguardPubKey:         n.WireguardPubKey,
		BootID:                  n.BootID,
	}
	for _, a := range n.Addresses {
		node.IPAddresses = append(node.IPAddresses, wire.NodeAddress{Type: a.Type, IP: a.IP.AsSlice()})
	}
	return node
}

// ModelNode is the reverse of Node.
func ModelNode(n *wire.Node) model.Node {
	node := model.Node{
		Name: n.Name, Cluster: n.Cluster, ClusterID: n.ClusterID,
		IPv4SecondaryAllocCIDRs: modelCIDRs(n.IPv4SecondaryAllocCIDRs),
		IPv6SecondaryAllocCIDRs: modelCIDRs(n.IPv6SecondaryAllocCIDRs),
		IPv4HealthIP:            addr(n.IPv4HealthIP),
		IPv6HealthIP:            addr(n.IPv6HealthIP),
		IPv4IngressIP:           addr(n.IPv4IngressIP),
		IPv6IngressIP:           addr(n.IPv6IngressIP),
		Source:                  n.Source,
		EncryptionKey:           n.EncryptionKey,
		Labels:                  n.Labels,
		Annotations:             n.Annotations,
		WireguardPubKey:         n.WireguardPubKey,
		BootID:                  n.BootID,
	}
	if n.IPv4AllocCIDR != nil {
		node.IPv4AllocCIDR, _ = n.IPv4AllocCIDR.Prefix()
	}
	if n.IPv6AllocCIDR != nil {
		node.IPv6AllocCIDR, _ = n.IPv6AllocCIDR.Prefix()
	}
	for _, a := range n.IPAddresses {
		node.Addresses = append(node.Addresses, model.NodeAddress{Type: a.Type, IP: a.Addr()})
	}
	return node
}

func cidr(p netip.Prefix) *wire.CIDR {
	if !p.IsValid() {
		return nil
	}
	c := wire.NewCIDR(p)
	return &c
}

func cidrs(prefixes []netip.Prefix) []wire.CIDR {
	var list []wire.CIDR
	for _, p := range prefixes {
		list = append(list, wire.NewCIDR(p))
	}
	return list
}

func modelCIDRs(list []wire.CIDR) []netip.Prefix {
	var prefixes []netip.Prefix
	for _, c := range list {
		p, _ := c.Prefix() // what is no prefix differs from every prefix
		prefixes = append(prefixes, p)
	}
	return prefixes
}

func addr(ip net.IP) netip.Addr {
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
}
