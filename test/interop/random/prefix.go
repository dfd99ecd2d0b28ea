package random

import (
	"encoding/binary"
	"net/netip"
)

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
