package api

import (
	"errors"
	"net/netip"
	"testing"
)

func FuzzDecodeCursor(f *testing.F) {
	for _, seed := range []string{"", "!", encodeCursor("ips", "10.0.0.1/32"), encodeCursor("nodes", "c/n"), "MS9pcHMv\r000"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		key, err := decodeCursor("ips", cursor)
		if err != nil {
			if _, ok := errors.AsType[*Problem](err); !ok {
				t.Fatalf("%T is no problem", err)
			}
			return
		}
		if encodeCursor("ips", key) != cursor {
			t.Fatalf("%q and %q are the same cursor", cursor, encodeCursor("ips", key))
		}
	})
}

func FuzzParseQuery(f *testing.F) {
	for _, seed := range []string{"", "limit=5", "limit=-1", "prefix=10.0.0.0/8&cluster=c2", "identity=1", "cursor=" + encodeCursor("ips", "10.0.0.1/32"), "%zz"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		q, err := parseQuery("ips", []string{byCluster, byPrefix, byIdentity}, raw)
		if err != nil {
			if _, ok := errors.AsType[*Problem](err); !ok {
				t.Fatalf("%T is no problem", err)
			}
			return
		}
		if q.limit < 0 || q.limit > MaxLimit {
			t.Fatalf("limit %d", q.limit)
		}
		if q.prefix.IsValid() && q.prefix != q.prefix.Masked() {
			t.Fatalf("prefix %s has host bits", q.prefix)
		}
	})
}

// FuzzJustBefore: the start of a range leaves nothing of the range out and
// nothing of an earlier address in.
func FuzzJustBefore(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0}, uint8(0))
	f.Add([]byte{10, 0, 0, 0}, uint8(8))
	f.Add(make([]byte, 16), uint8(0))
	f.Fuzz(func(t *testing.T, raw []byte, bits uint8) {
		a, ok := netip.AddrFromSlice(raw)
		if !ok || a.Is4In6() || int(bits) > a.BitLen() {
			return
		}
		p := netip.PrefixFrom(a, int(bits)).Masked()
		start := justBefore(p.Addr())
		if comparePrefixes(start, p) >= 0 {
			t.Fatalf("%s is not before %s", start, p)
		}
		if !start.IsValid() {
			return
		}
		if next := start.Addr().Next(); next.IsValid() && next != p.Addr() || !next.IsValid() && p.Addr() != netip.IPv6Unspecified() {
			t.Fatalf("there is room between %s and %s", start, p)
		}
	})
}
