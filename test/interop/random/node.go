package random

import (
	"math"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// ClusterConfig makes the cluster's configuration.
func (m *Maker) ClusterConfig() model.ClusterConfig {
	return model.ClusterConfig{
		Cluster: m.cluster.Name, ID: m.cluster.ID,
		SyncedCanaries:           m.percent(50),
		Cached:                   m.percent(50),
		MaxConnectedClusters:     m.cluster.MaxConnectedClusters,
		ServiceExportsEnabled:    m.flag(),
		EndpointSlicesExportMode: pick(m.r, "", "services-and-endpointslices", "endpointslices-only"),
	}
}

// Node makes the i-th node.
func (m *Maker) Node(i int) model.Node {
	n := model.Node{
		Cluster: m.cluster.Name, ClusterID: m.cluster.ID,
		Name:            name("node-", i, maxName),
		IPv4AllocCIDR:   m.prefixOrNone(m.ipv4),
		IPv6AllocCIDR:   m.prefixOrNone(m.ipv6),
		IPv4HealthIP:    m.addrOrNone(m.ipv4),
		IPv6HealthIP:    m.addrOrNone(m.ipv6),
		IPv4IngressIP:   m.addrOrNone(m.ipv4),
		IPv6IngressIP:   m.addrOrNone(m.ipv6),
		Source:          pick(m.r, "", "custom-resource", "kvstore", "local", "clustermesh", "unspec"),
		EncryptionKey:   pick(m.r, uint8(0), 1, 15, math.MaxUint8),
		Labels:          m.labels(),
		Annotations:     m.annotations(),
		WireguardPubKey: pick(m.r, "", "nC3mHbOxIBzM2Yk1NLRG4xmn9rX3hZpM0kzyHpbqCkc=", m.printable(500)),
		BootID:          pick(m.r, "", "9f0f5f8e-6b0e-4d67-8f0c-6f6f2a6c6d5e", m.printable(500)),
	}
	for range m.few(20) {
		kind := pick(m.r, "InternalIP", "ExternalIP", "CiliumInternalIP", "Hostname", "InternalDNS", "ExternalDNS", "Other", "")
		n.IPAddresses = append(n.IPAddresses, model.NodeAddress{Type: kind, IP: m.addr()})
	}
	for range m.few(10) {
		n.IPv4SecondaryAllocCIDRs = append(n.IPv4SecondaryAllocCIDRs, m.prefix(m.ipv4))
	}
	for range m.few(10) {
		n.IPv6SecondaryAllocCIDRs = append(n.IPv6SecondaryAllocCIDRs, m.prefix(m.ipv6))
	}
	return n
}
