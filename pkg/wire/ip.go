package wire

import (
	"fmt"
	"net/netip"
)

// IP is the form in which readers keep an address or a prefix of a remote cluster (wire.md §1.7).
type IP struct {
	// Prefix is unchanged from the writer: host bits are not masked. It has full length for a host.
	Prefix netip.Prefix
	// Host is true when the key has no length. A host and a prefix of full length are different entries.
	Host bool
	// HostIP is the node, invalid when there is none.
	HostIP netip.Addr
	// Identity is never 1 (host): a remote's host is a remote node, 6.
	Identity      uint32
	EncryptionKey uint8 // index; 0 is none
	Namespace     string
	Pod           string
	// Ports holds those with a usable name, protocol and port; the protocol is
	// TCP, UDP or SCTP. Nil for none.
	Ports []NamedPort
}

// DecodeIP reads the entry with this name and checks that it belongs to the
// remote (wire.md §1.7). The error is a [*RejectError].
//
// The reason [ReasonRange] is special: the value is well-formed, but its identity is neither reserved nor in
// the remote's range. Cilium applies this test after its store: the key is present, counts, and is not stale at
// a relist; only the mapping is not made or changed (wire.md §7.2-4).
func DecodeIP(name string, value []byte, e Expect) (IP, error) {
	if err := bounded(name, value); err != nil {
		return IP{}, err
	}
	ip, ok := decodeFast(name, value)
	if !ok {
		var err error
		if ip, err = decodeSlow(name, value); err != nil {
			return IP{}, err
		}
	}
	return ip.checked(&e)
}

// decodeSlow is the reference implementation, with encoding/json. It neither checks nor changes the identity.
func decodeSlow(name string, value []byte) (IP, error) {
	var p IPIdentityPair
	if err := unmarshal(name, value, &p); err != nil {
		return IP{}, err
	}
	if got := p.Name(); got != name {
		return IP{}, reject(ReasonKey, "IP address does not match key: expected %s, got %s", name, got)
	}
	prefix, err := p.prefix()
	if err != nil {
		return IP{}, &RejectError{Reason: ReasonAddress, Err: err}
	}
	ip := IP{
		Prefix:        prefix,
		Host:          p.Mask == nil,
		HostIP:        addrOf(p.HostIP),
		Identity:      p.Identity,
		EncryptionKey: p.EncryptionKey,
		Namespace:     p.Namespace,
		Pod:           p.Pod,
	}
	if err := atMost(maxNamedPorts, len(p.NamedPorts), "named ports"); err != nil {
		return IP{}, err
	}
	for i, port := range p.NamedPorts {
		if protocol, ok := usablePort(port.Name, uint64(port.Port), port.Protocol); ok {
			if ip.Ports == nil {
				ip.Ports = make([]NamedPort, 0, len(p.NamedPorts)-i)
			}
			ip.Ports = append(ip.Ports, NamedPort{Name: port.Name, Port: port.Port, Protocol: protocol})
		}
	}
	return ip, nil
}

// prefix returns the pair's prefix with its host bits.
func (p *IPIdentityPair) prefix() (netip.Prefix, error) {
	addr := addrOf(p.IP)
	if !addr.IsValid() {
		return netip.Prefix{}, fmt.Errorf("the IP address is unset")
	}
	if p.Mask == nil {
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	ones, _ := p.Mask.Size()
	if ones > addr.BitLen() {
		return netip.Prefix{}, fmt.Errorf("the mask of %s is too long: %d", addr, ones)
	}
	return netip.PrefixFrom(addr, ones), nil
}

// checked applies the reader's rules for the numeric identity and the names.
func (ip IP) checked(e *Expect) (IP, error) {
	if ip.Identity >= IdentityReservedEnd && e.compares() && !e.Layout.Contains(e.ClusterID, ip.Identity) {
		lo, hi := e.Layout.Range(e.ClusterID)
		return IP{}, reject(ReasonRange, "identity %d is neither reserved nor in cluster %s's range %d to %d",
			ip.Identity, e.Cluster, lo, hi)
	}
	if ip.Identity == IdentityHost {
		ip.Identity = IdentityRemoteNode
	}
	if ip.Namespace != "" && !isLabel(ip.Namespace) {
		return IP{}, notA("the namespace", ip.Namespace, ruleLabel)
	}
	if ip.Pod != "" && !isSubdomain(ip.Pod) {
		return IP{}, notA("the pod", ip.Pod, ruleSubdomain)
	}
	return ip, nil
}
