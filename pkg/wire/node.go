package wire

import (
	"cmp"
	"net"
	"net/netip"
)

// The types of node addresses (wire.md §1.2). Others occur and are kept.
const (
	AddressInternalIP       = "InternalIP"
	AddressExternalIP       = "ExternalIP"
	AddressCiliumInternalIP = "CiliumInternalIP"
	AddressHostname         = "Hostname"
	AddressInternalDNS      = "InternalDNS"
	AddressExternalDNS      = "ExternalDNS"
)

// Node is a node of a cluster (wire.md §1.2). All fields are always written, in this order.
type Node struct {
	Name                    string
	Cluster                 string
	IPAddresses             []NodeAddress
	IPv4AllocCIDR           *CIDR  // primary pod CIDR, nil when there is none
	IPv4SecondaryAllocCIDRs []CIDR // further pod CIDRs
	IPv6AllocCIDR           *CIDR
	IPv6SecondaryAllocCIDRs []CIDR
	IPv4HealthIP            net.IP // nil when there is none
	IPv6HealthIP            net.IP
	IPv4IngressIP           net.IP
	IPv6IngressIP           net.IP
	ClusterID               uint32
	Source                  string // the writer's provenance; readers set their own
	EncryptionKey           uint8  // IPsec key index, or non-zero for WireGuard; 0 is none
	Labels                  map[string]string
	Annotations             map[string]string
	WireguardPubKey         string // base64, not validated
	BootID                  string
}

// NodeAddress is one address of a node. IP may be nil.
type NodeAddress struct {
	Type string
	IP   net.IP
}

// Addr returns the address in the form that readers use, IPv4 unmapped; it is
// invalid when there is none.
func (a NodeAddress) Addr() netip.Addr { return addrOf(a.IP) }

// CIDR is an IP address with the raw bytes of a mask, as in the entries of nodes. Nothing about it is validated
// on the wire.
type CIDR struct {
	IP   net.IP
	Mask net.IPMask
}

// Prefix returns the masked prefix, and false when the address is missing or
// the mask is not one of a contiguous prefix of the address's family.
func (c CIDR) Prefix() (netip.Prefix, bool) {
	addr := addrOf(c.IP)
	ones, bits := c.Mask.Size()
	if !addr.IsValid() || bits == 0 || bits != addr.BitLen() {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(addr, ones).Masked(), true
}

// NewCIDR returns the wire form of a prefix.
func NewCIDR(p netip.Prefix) CIDR {
	p = p.Masked()
	return CIDR{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// addrOf converts an address from the wire; IPv4 in IPv6 becomes IPv4, since the text form on the wire is the
// same.
func addrOf(ip net.IP) netip.Addr {
	addr, _ := netip.AddrFromSlice(ip)
	return addr.Unmap()
}

// Key returns the node's key in its cluster's state.
func (n *Node) Key() string { return Nodes.Key(n.Cluster, false, n.Name) }

// Encode returns the value to write.
func (n *Node) Encode() []byte { return mustJSON(n) }

// DecodeNode reads the node with this name and checks that it is the remote's
// (wire.md §1.2). The error is a [*RejectError].
func DecodeNode(name string, value []byte, e Expect) (*Node, error) {
	n := &Node{}
	if err := unmarshal(name, value, n); err != nil {
		return nil, err
	}
	if err := n.validate(name, e); err != nil {
		return nil, err
	}
	return n, nil
}

func (n *Node) validate(name string, e Expect) error {
	if err := within(
		amount{len(n.IPAddresses), maxNodeAddrs, "addresses"},
		amount{len(n.IPv4SecondaryAllocCIDRs), maxPodCIDRs, "further IPv4 pod CIDRs"},
		amount{len(n.IPv6SecondaryAllocCIDRs), maxPodCIDRs, "further IPv6 pod CIDRs"},
		amount{len(n.Labels), maxLabels, "labels"},
		amount{len(n.Annotations), maxLabels, "annotations"},
	); err != nil {
		return err
	}
	if err := cmp.Or(required([2]string{"cluster", n.Cluster}, [2]string{"name", n.Name}), e.validID(n.ClusterID), e.sameCluster(n.Cluster)); err != nil {
		return err
	}
	if n.Name != name {
		return reject(ReasonKey, "name does not match key: got %s, expected %s", n.Name, name)
	}
	return cmp.Or(e.sameID(n.ClusterID), n.CheckNames())
}

// CheckNames checks all texts, as [DecodeNode] does. The error is a [*RejectError].
func (n *Node) CheckNames() error {
	var c checks
	c.name("the name", n.Name, isNode, ruleNode)
	c.labels("label", n.Labels)
	c.annotations(n.Annotations)
	for i := range n.IPAddresses {
		c.token("the address type", n.IPAddresses[i].Type)
	}
	c.printable("the source", n.Source)
	c.printable("the WireGuard key", n.WireguardPubKey)
	c.printable("the boot ID", n.BootID)
	return c.err
}
