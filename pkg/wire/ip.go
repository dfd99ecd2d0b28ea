package wire

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
)

// IP is what readers keep of an address or a prefix of a remote cluster
// (wire.md §1.7).
type IP struct {
	// Prefix is as the writer wrote it: host bits are not masked. It has full
	// length for a host.
	Prefix netip.Prefix
	// Host tells that the key carries no length. A host and a prefix of full
	// length are different entries.
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

// IPDecoder decodes many IP entries of one cluster.
type IPDecoder struct {
	Expect Expect
	// Intern returns the string with these bytes, which it must not keep. It is
	// called for namespaces, pods and names of ports, also of entries that are
	// rejected in the end. Nil makes a new string each time.
	Intern func([]byte) string
}

// DecodeIP reads the entry with this name and checks that it belongs to the
// remote (wire.md §1.7). The error is a [*RejectError].
//
// The reason [ReasonRange] is special: the value is well-formed, but its
// identity is neither reserved nor in the remote's range. Cilium applies that
// test behind its store: the key is there, counts, and is not stale at a
// relist, only the mapping is not made or changed (wire.md §7.2-4).
func DecodeIP(name string, value []byte, e Expect) (IP, error) {
	d := IPDecoder{Expect: e}
	return d.Decode(name, value)
}

// Decode reads one entry, see [DecodeIP].
func (d *IPDecoder) Decode(name string, value []byte) (IP, error) {
	if err := bounded(name, value); err != nil {
		return IP{}, err
	}
	ip, ok := d.decodeFast(name, value)
	if !ok {
		var err error
		if ip, err = d.decodeSlow(name, value); err != nil {
			return IP{}, err
		}
	}
	return d.checkIdentity(ip)
}

// decodeSlow is the reference: encoding/json. It leaves the identity as it is.
func (d *IPDecoder) decodeSlow(name string, value []byte) (IP, error) {
	m := newMeter(len(value))
	if err := m.takeJSON(value); err != nil {
		return IP{}, err
	}
	var p IPIdentityPair
	if err := json.Unmarshal(value, &p); err != nil {
		return IP{}, rejectDecode(err)
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
		Namespace:     d.intern([]byte(p.Namespace)),
		Pod:           d.intern([]byte(p.Pod)),
	}
	if err := atMost(maxNamedPorts, len(p.NamedPorts), "named ports"); err != nil {
		return IP{}, err
	}
	for i, port := range p.NamedPorts {
		if protocol, ok := usablePort(port.Name, uint64(port.Port), port.Protocol); ok {
			name := d.intern([]byte(port.Name))
			if ip.Ports == nil {
				ip.Ports = make([]NamedPort, 0, len(p.NamedPorts)-i)
			}
			ip.Ports = append(ip.Ports, NamedPort{Name: name, Port: port.Port, Protocol: protocol})
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

// checkIdentity applies the reader's rules for the numeric identity.
func (d *IPDecoder) checkIdentity(ip IP) (IP, error) {
	e := &d.Expect
	if ip.Identity >= IdentityReservedEnd && e.compares() && !e.Layout.Contains(e.ClusterID, ip.Identity) {
		lo, hi := e.Layout.Range(e.ClusterID)
		return IP{}, reject(ReasonRange, "identity %d is neither reserved nor in cluster %s's range %d to %d",
			ip.Identity, e.Cluster, lo, hi)
	}
	if ip.Identity == IdentityHost {
		ip.Identity = IdentityRemoteNode
	}
	return ip, nil
}

// ParseIPName reads the name of an IP entry's key: an address for a host, or an
// address with a length. The text must be canonical, as all keys are; host bits
// are kept. The error is a [*RejectError].
func ParseIPName(name string) (prefix netip.Prefix, host bool, err error) {
	if strings.IndexByte(name, '/') < 0 {
		addr, err := netip.ParseAddr(name)
		if err != nil {
			return netip.Prefix{}, false, reject(ReasonKey, "the key names no address: %w", err)
		}
		prefix, host = netip.PrefixFrom(addr, addr.BitLen()), true
	} else if prefix, err = netip.ParsePrefix(name); err != nil {
		return netip.Prefix{}, false, reject(ReasonKey, "the key names no prefix: %w", err)
	}
	if canonical := ipName(prefix, host); canonical != name {
		return netip.Prefix{}, false, reject(ReasonKey, "the key %s is not in canonical form, which is %s", name, canonical)
	}
	return prefix, host, nil
}

// Name returns the name of the entry's key.
func (ip IP) Name() string { return ipName(ip.Prefix, ip.Host) }

func ipName(p netip.Prefix, host bool) string {
	p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits())
	if host {
		return p.Addr().String()
	}
	return p.String()
}
