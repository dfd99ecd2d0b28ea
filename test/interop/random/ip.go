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

// addressOf returns a prefix, or an address, that no other number has: in turn an
// IPv4 and an IPv6 address, prefixes of full length, and shorter ones from /0 on.
func addressOf(i int) (prefix netip.Prefix, host bool) {
	n := uint32(i / 6)
	other := byte(1) // another network than that of the hosts
	if n%64 == 0 {
		other = 0
	}
	switch i % 6 {
	case 0:
		return netip.PrefixFrom(address4(10, n), 32), true
	case 1:
		return netip.PrefixFrom(address6(0xb8, n), 128), true
	case 2:
		return netip.PrefixFrom(address4(10+other, n), 32), false
	case 3:
		return netip.PrefixFrom(address6(0xb8+other, n), 128), false
	case 4:
		return shorter(32, 14, n), false
	default:
		return shorter(128, 24, n), false
	}
}

// address4 returns the n-th address of a network of 2^24.
func address4(network byte, n uint32) netip.Addr {
	b := binary.BigEndian.AppendUint32(nil, n)
	b[0] = network
	return netip.AddrFrom4([4]byte(b))
}

// address6 returns the n-th address of a network, with zeroes in different places,
// because the text of an address is shortened there.
func address6(network byte, n uint32) netip.Addr {
	b := binary.BigEndian.AppendUint32([]byte{0x20, 0x01, 0x0d, network}, n)
	ends := [...]uint64{0, 1, 1 << 32, 1<<63 | 1, 0xffff << 16, 1<<64 - 1}
	return netip.AddrFrom16([16]byte(binary.BigEndian.AppendUint64(b, ends[n%uint32(len(ends))])))
}

// shorter returns the n-th prefix that is not of full length: first one of each
// length below least, then all lengths in turn, with a value in the first bits.
func shorter(bits, least, n uint32) netip.Prefix {
	b := make([]byte, bits/8)
	length := n
	if n >= least {
		length = least + (n-least)%(bits-least)
		binary.BigEndian.PutUint32(b, (n-least)/(bits-least)<<(32-least))
	}
	addr, _ := netip.AddrFromSlice(b)
	return netip.PrefixFrom(addr, int(length))
}
