package random

import (
	"encoding/binary"
	"math"
	"net/netip"
)

// ipv4 makes an address, often one of the first and last.
func (m *Maker) ipv4() netip.Addr {
	v := m.r.Uint32()
	if m.percent(10) {
		v = pick(m.r, uint32(0), 1, 0x7f000001, 0xc0a80001, math.MaxUint32)
	}
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, v)))
}

// ipv6 makes an address, often one with a text that is special; none is an IPv4
// address in IPv6, because readers do not tell the two.
func (m *Maker) ipv6() netip.Addr {
	if m.percent(20) {
		return netip.MustParseAddr(pick(m.r, "::", "::1", "fe80::1", "ff02::1", "2001:db8::",
			"2001:db8:0:0:1:0:0:1", "64:ff9b::192.0.2.1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"))
	}
	hi, lo := m.r.Uint64()|1<<61, m.r.Uint64()
	b := binary.BigEndian.AppendUint64(nil, hi)
	return netip.AddrFrom16([16]byte(binary.BigEndian.AppendUint64(b, lo)))
}

// addr makes an address of either family.
func (m *Maker) addr() netip.Addr {
	if m.percent(50) {
		return m.ipv4()
	}
	return m.ipv6()
}

// addrOrNone makes an address of a family, or none.
func (m *Maker) addrOrNone(of func() netip.Addr) netip.Addr {
	if m.percent(50) {
		return netip.Addr{}
	}
	return of()
}

// prefix makes a prefix of the address's family, often of one of the extreme lengths.
func (m *Maker) prefix(of func() netip.Addr) netip.Prefix {
	a := of()
	bits := a.BitLen()
	p, _ := a.Prefix(pick(m.r, 0, 1, bits/4, bits/2, bits-8, bits-1, bits, m.r.IntN(bits+1)))
	return p
}

// prefixOrNone makes a prefix of a family, or none.
func (m *Maker) prefixOrNone(of func() netip.Addr) netip.Prefix {
	if m.percent(40) {
		return netip.Prefix{}
	}
	return m.prefix(of)
}
