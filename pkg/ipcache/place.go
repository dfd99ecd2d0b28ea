package ipcache

import (
	"cmp"
	"encoding/binary"
	"net/netip"
)

// address is a [netip.Addr] in two words and without its pointer, since each of a million entries has two. IPv4 is kept
// in its mapped form, so a mapped address equals the IPv4 address. The zero address means none.
type address struct{ hi, lo uint64 }

func pack(a netip.Addr) address {
	b := a.As16()
	return address{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

func (a address) is4() bool { return a.hi == 0 && a.lo>>32 == 0xffff }

// unpack converts it back; the zero address becomes "::".
func (a address) unpack() netip.Addr {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], a.hi)
	binary.BigEndian.PutUint64(b[8:], a.lo)
	return netip.AddrFrom16(b).Unmap()
}

// masked returns the address with only its first bits.
func (a address) masked(bits uint8) address {
	if bits <= 64 {
		return address{a.hi &^ (^uint64(0) >> bits), 0}
	}
	return address{a.hi, a.lo &^ (^uint64(0) >> (bits - 64))}
}

func (a address) compare(b address) int {
	if c := cmp.Compare(a.hi, b.hi); c != 0 {
		return c
	}
	return cmp.Compare(a.lo, b.lo)
}

// mappedBits is how many bits a prefix is longer in the mapped form of IPv4.
const mappedBits = 96

// hostBits is the length of a prefix that is a single address.
const hostBits = 128

// place is a prefix without host bits, in packed form. Claims on the same place compete.
type place struct {
	at   address
	bits uint8 // 0 to 128: of the mapped form for IPv4
}

// placeOf packs a valid prefix.
func placeOf(p netip.Prefix) place {
	bits := uint8(p.Bits())
	if p.Addr().Is4() {
		bits += mappedBits
	}
	return place{pack(p.Addr()).masked(bits), bits}
}

func (p place) host() bool { return p.bits == hostBits }

func (p place) prefix() netip.Prefix {
	if p.at.is4() { // so, without host bits, it is 96 bits or longer
		return netip.PrefixFrom(p.at.unpack(), int(p.bits)-mappedBits)
	}
	return netip.PrefixFrom(p.at.unpack(), int(p.bits))
}

// before orders places: by address, IPv4 first, then the shorter first.
func (p place) before(o place) bool {
	if p.at == o.at {
		return p.bits < o.bits
	}
	if four := p.at.is4(); four != o.at.is4() {
		return four
	}
	return p.at.compare(o.at) < 0
}
