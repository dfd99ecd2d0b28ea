package ipcache

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

// drawPrefix draws any prefix, often an IPv4-mapped one or one close to another.
func drawPrefix(t *rapid.T, label string) netip.Prefix {
	var b [16]byte
	copy(b[:], rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 0x7f, 0x80, 0xff}), 16, 16).Draw(t, label))
	addr := netip.AddrFrom16(b)
	switch rapid.IntRange(0, 2).Draw(t, label+" family") {
	case 0:
		addr = netip.AddrFrom4([4]byte(b[12:]))
	case 1:
		addr = netip.AddrFrom16(netip.AddrFrom4([4]byte(b[12:])).As16()) // mapped
	}
	return netip.PrefixFrom(addr, rapid.IntRange(0, addr.BitLen()).Draw(t, label+" bits"))
}

// canonical returns the canonical form of a prefix, computed with netip.
func canonical(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked()
}

// TestPlacesAreLikeNetip compares the packed form with netip: the prefix, and the order of prefixes.
func TestPlacesAreLikeNetip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawPrefix(t, "a"), drawPrefix(t, "b")
		if got := placeOf(a).prefix(); got != canonical(a) {
			t.Fatalf("%s became %s, want %s", a, got, canonical(a))
		}
		e := NewEntry(Spec{Prefix: a, HostIP: b.Addr()})
		if e.Prefix() != canonical(a) || e.place() != placeOf(a) {
			t.Fatalf("an entry for %s has the prefix %s", a, e.Prefix())
		}
		if want := b.Addr().Unmap(); e.HostIP() != want && !(want == netip.IPv6Unspecified() && !e.HostIP().IsValid()) {
			t.Fatalf("the host %s became %s", want, e.HostIP())
		}
		c, d := canonical(a), canonical(b)
		want := c.Addr().Compare(d.Addr())
		if want == 0 {
			want = c.Bits() - d.Bits()
		}
		if got := placeOf(a).before(placeOf(b)); got != (want < 0) {
			t.Fatalf("%s before %s: %v", c, d, got)
		}
	})
}
