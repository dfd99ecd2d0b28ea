package faults

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/model"
)

// operations are the changes to the contents of a cluster. Repeated names
// are more likely.
func operations() []string {
	return []string{
		"node", "node", "service", "service", "service", "slice", "slice", "identity", "identity",
		"ip", "ip", "ip", "ip", "cidr", "delete", "delete", "delete", "delete",
		"malformed", "foreign", "foreign-identity", "txn", "burst",
	}
}

// change is one write; a nil value deletes the key.
type change struct {
	key   string
	value []byte
}

// maker makes the contents of a cluster.
type maker struct {
	*rand.Rand
	name string
	id   uint32
}

// transactions are the writes of an operation, in order.
func (m maker) transactions(do string) [][]change {
	if one := map[string]func() change{
		"node": m.node, "service": m.service, "slice": m.slice, "identity": m.identity, "ip": m.ip, "cidr": m.cidr,
		"delete":    func() change { return change{key: m.any().key} },
		"malformed": m.malformed, "foreign": m.foreign, "foreign-identity": m.foreignIdentity,
	}[do]; one != nil {
		return [][]change{{one()}}
	}
	switch do {
	case "txn": // several keys at one revision
		var all []change
		for range 2 + m.IntN(10) {
			c := m.any()
			if m.IntN(3) == 0 {
				c.value = nil
			}
			if !slices.ContainsFunc(all, func(o change) bool { return o.key == c.key }) {
				all = append(all, c)
			}
		}
		return [][]change{all}
	case "burst": // a few keys repeatedly
		var all [][]change
		keys := make([]func() change, 2)
		for i := range keys {
			keys[i] = []func() change{m.node, m.service, m.slice, m.identity, m.ip}[m.IntN(5)]
		}
		for range 30 {
			all = append(all, []change{keys[m.IntN(len(keys))]()})
		}
		return all
	}
	panic("no operation is called " + do)
}

// any makes one object of any kind.
func (m maker) any() change {
	return []func() change{m.node, m.service, m.slice, m.identity, m.ip, m.ip, m.cidr}[m.IntN(7)]()
}

// addr is an address of this cluster only, or one that others claim as well.
func (m maker) addr() netip.Addr {
	switch m.IntN(6) {
	case 0, 1:
		return netip.AddrFrom4([4]byte{10, 200, 0, byte(m.IntN(12))})
	case 2:
		return netip.MustParseAddr(fmt.Sprintf("fd00::%x", m.IntN(12)))
	default:
		return netip.AddrFrom4([4]byte{10, byte(m.id), 0, byte(m.IntN(40))})
	}
}

func (m maker) word(of ...string) string { return of[m.IntN(len(of))] }

func (m maker) node() change {
	i := m.IntN(12)
	n := wire.Node{
		Name: fmt.Sprint("node", i), Cluster: m.name, ClusterID: m.id, BootID: fmt.Sprint("boot", m.IntN(4)),
		EncryptionKey: uint8(m.IntN(3)), //nolint:gosec // small
		Labels:        map[string]string{"zone": m.word("a", "b")},
		IPAddresses:   []wire.NodeAddress{{Type: wire.AddressInternalIP, IP: net.IPv4(172, 16, byte(m.id), byte(i))}},
	}
	more := []wire.NodeAddress{
		{Type: wire.AddressExternalIP, IP: m.addr().AsSlice()},
		{Type: wire.AddressCiliumInternalIP, IP: m.addr().AsSlice()},
		{Type: wire.AddressCiliumInternalIP, IP: net.IPv4(172, 16, byte(m.id), byte(i))}, // the same with another type
		{Type: wire.AddressInternalIP, IP: net.ParseIP(fmt.Sprintf("fd01::%x", m.IntN(4)))},
		{Type: wire.AddressHostname},
		{Type: "Something", IP: net.IPv4(172, 31, 0, byte(m.IntN(4)))},
	}
	for range m.IntN(3) {
		n.IPAddresses = append(n.IPAddresses, more[m.IntN(len(more))])
	}
	m.Shuffle(len(n.IPAddresses), func(i, j int) {
		n.IPAddresses[i], n.IPAddresses[j] = n.IPAddresses[j], n.IPAddresses[i]
	})
	if m.IntN(4) > 0 {
		c := wire.NewCIDR(netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(m.id), byte(100 + i), 0}), 24))
		n.IPv4AllocCIDR = &c
	}
	if m.IntN(3) == 0 {
		n.IPv4SecondaryAllocCIDRs = []wire.CIDR{wire.NewCIDR(netip.MustParsePrefix(fmt.Sprintf("10.99.%d.0/24", m.IntN(3))))}
	}
	if m.IntN(3) == 0 {
		n.IPv4HealthIP, n.IPv6IngressIP = m.addr().AsSlice(), net.ParseIP(fmt.Sprintf("fd02::%x", m.IntN(4)))
	}
	return change{n.Key(), n.Encode()}
}

func (m maker) service() change {
	s := wire.Service{
		Cluster: m.name, ClusterID: m.id, Namespace: m.word("ns1", "ns2"), Name: fmt.Sprint("svc", m.IntN(6)),
		Shared: m.IntN(4) > 0, Labels: map[string]string{"tier": m.word("x", "y")},
		Backends: map[string]wire.Ports{}, Hostnames: map[string]string{}, Zones: map[string]wire.Zone{},
	}
	for range m.IntN(5) {
		ip := m.addr().String()
		s.Backends[ip] = wire.Ports{
			"http": {Protocol: "TCP", Port: uint16(8000 + m.IntN(3))}, //nolint:gosec // small
			"dns":  {Protocol: m.word("UDP", "TCP"), Port: 53},
		}
		if m.IntN(3) == 0 {
			s.Hostnames[ip], s.Zones[ip] = "host", wire.Zone{Zone: m.word("a", "b")}
		}
	}
	return change{s.Key(), s.Encode()}
}

// slice writes one of two slices of a service: each has the addresses of one
// family, so that none is in both.
func (m maker) slice() change {
	service := fmt.Sprint("svc", m.IntN(6))
	s := wire.EndpointSlice{
		Cluster: m.name, ClusterID: m.id, Namespace: m.word("ns1", "ns2"), Name: service + "-4",
		Labels: map[string]string{wire.LabelServiceName: service}, AddressType: wire.AddressTypeIPv4,
	}
	if m.IntN(2) == 0 {
		s.Name, s.AddressType = service+"-6", wire.AddressTypeIPv6
	}
	seen := map[netip.Addr]bool{}
	for range m.IntN(12) {
		ip := m.addr()
		if seen[ip] || ip.Is4() != (s.AddressType == wire.AddressTypeIPv4) {
			continue
		}
		seen[ip] = true
		s.Endpoints = append(s.Endpoints, wire.Endpoint{
			Addresses: []string{ip.String()}, Zone: m.maybe("a", "b"), NodeName: m.maybe("node1", "node2"),
			Conditions: wire.EndpointConditions{Ready: m.perhaps(), Serving: m.perhaps(), Terminating: m.perhaps()},
		})
	}
	return change{s.Key(), s.Encode()}
}

func (m maker) maybe(of ...string) *string {
	if m.IntN(2) == 0 {
		return nil
	}
	return &of[m.IntN(len(of))]
}

func (m maker) perhaps() *bool {
	if m.IntN(2) == 0 {
		return nil
	}
	yes := m.IntN(2) == 0
	return &yes
}

// spelled are the identities that may be written with leading zeroes.
func (m maker) spelled() []uint32 { return []uint32{m.id << 16, m.id<<16 + 1, m.id<<16 + 2} }

func (m maker) identity() change {
	id := m.id<<16 + uint32(m.IntN(24)) //nolint:gosec // small
	key := wire.IdentityKey(id)
	if slices.Contains(m.spelled(), id) && m.IntN(2) == 0 {
		at := strings.LastIndexByte(key, '/') + 1
		key = key[:at] + strings.Repeat("0", 1+m.IntN(2)) + key[at:]
	}
	return change{key, m.labels(m.name)}
}

func (m maker) labels(cluster string) []byte {
	return fmt.Appendf(nil, "k8s:app=a%d;k8s:io.cilium.k8s.policy.cluster=%s;", m.IntN(3), cluster)
}

func (m maker) ip() change { return m.pair(wire.NewHostPair(m.addr())) }

// cidr writes a prefix: it may have host bits, or full length.
func (m maker) cidr() change {
	bits := []int{24, 28, 32}[m.IntN(3)]
	p := wire.IPIdentityPair{
		IP:   netip.AddrFrom4([4]byte{10, 200, 0, byte(m.IntN(12))}).AsSlice(),
		Mask: net.CIDRMask(bits, 32),
	}
	return m.pair(p)
}

func (m maker) pair(p wire.IPIdentityPair) change {
	p.Identity = m.id<<16 + uint32(m.IntN(24)) //nolint:gosec // small
	switch m.IntN(8) {
	case 0:
		p.Identity = uint32(m.IntN(9)) //nolint:gosec // a reserved one; 1 becomes 6
	case 1:
		p.HostIP = net.IPv4(172, 16, byte(m.id), byte(m.IntN(12)))
		p.EncryptionKey = uint8(m.IntN(3)) //nolint:gosec // small
	case 2:
		p.NamedPorts = []wire.NamedPort{{Name: "http", Port: 80, Protocol: "TCP"}}
	}
	p.Namespace, p.Pod = m.word("ns1", "ns2"), fmt.Sprint("pod", m.IntN(30))
	return change{p.Key(), p.Encode()}
}

// plain makes an object that only one key can have.
func (m maker) plain() change {
	for {
		c := []func() change{m.node, m.service, m.slice, m.identity, m.ip}[m.IntN(5)]()
		if model.FamilyOf(c.key) != "identities" || !slices.ContainsFunc(m.spelled(), func(id uint32) bool {
			return plainKey(c.key) == wire.IdentityKey(id)
		}) {
			return c
		}
	}
}

// malformed spoils a value.
func (m maker) malformed() change {
	c := m.plain()
	switch m.IntN(5) {
	case 0:
		c.value = []byte{}
	case 1:
		c.value = []byte("null")
	case 2:
		c.value = c.value[:len(c.value)/3]
	case 3:
		c.value = append([]byte("\x00"), c.value...)
	default:
		c.value = []byte(`{"IP":7,"Name":[],"backends":{"nowhere":{}}}`)
	}
	return c
}

// foreign writes an object of another cluster, under a key of this one.
func (m maker) foreign() change {
	key := m.plain().key
	other := m
	other.name, other.id = "elsewhere", m.id+100
	for {
		c := other.plain()
		if model.FamilyOf(c.key) == model.FamilyOf(key) {
			return change{key, c.value}
		}
	}
}

// foreignIdentity writes identities out of the cluster's range.
func (m maker) foreignIdentity() change {
	id := uint32(m.IntN(300))<<16 + uint32(m.IntN(24)) //nolint:gosec // small
	if m.IntN(2) == 0 {
		return change{wire.IdentityKey(id), m.labels(m.name)}
	}
	p := wire.NewHostPair(m.addr())
	p.Identity = id
	return change{p.Key(), p.Encode()}
}
