package claims

import (
	"net/netip"
	"testing"
)

// TestSpecial checks the first and the last address of each range, and the addresses next to them, sorted.
func TestSpecial(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		prefix string
		name   string // of the range; empty if it may be claimed
	}{
		{"0.0.0.0/32", "this network (RFC 1122)"},
		{"0.255.255.255/32", "this network (RFC 1122)"},
		{"1.0.0.0/32", ""},
		{"10.0.0.0/8", ""},
		{"10.0.0.1/32", ""},
		{"100.64.0.0/10", ""},
		{"100.64.0.1/32", ""},
		{"100.100.100.0/24", ""},
		{"100.100.100.199/32", ""},
		{"100.100.100.200/32", "metadata of Alibaba Cloud"},
		{"100.100.100.201/32", ""},
		{"126.255.255.255/32", ""},
		{"127.0.0.1/32", "loopback (RFC 1122)"},
		{"127.255.255.255/32", "loopback (RFC 1122)"},
		{"128.0.0.0/32", ""},
		{"168.63.129.15/32", ""},
		{"168.63.129.16/32", "metadata of Azure"},
		{"168.63.129.17/32", ""},
		{"169.253.255.255/32", ""},
		{"169.254.0.0/16", "link-local (RFC 3927)"},
		{"169.254.169.254/32", "link-local (RFC 3927)"},
		{"169.254.170.23/32", "link-local (RFC 3927)"},
		{"169.0.0.0/8", "link-local (RFC 3927)"},
		{"169.255.0.0/32", ""},
		{"191.255.255.255/32", ""},
		{"192.0.0.192/32", "protocol assignments (RFC 6890), metadata of Oracle Cloud"},
		{"192.0.1.0/32", ""},
		{"192.0.2.1/32", ""},
		{"192.88.99.1/32", "6to4 relays (RFC 7526)"},
		{"192.168.0.0/16", ""},
		{"198.18.0.1/32", ""},
		{"223.255.255.255/32", ""},
		{"224.0.0.1/32", "multicast (RFC 5771)"},
		{"239.255.255.255/32", "multicast (RFC 5771)"},
		{"240.0.0.0/13", "reserved (RFC 1112)"},
		{"240.0.0.1/32", "reserved (RFC 1112)"},
		{"255.255.255.254/32", "reserved (RFC 1112)"},
		{"255.255.255.255/32", "broadcast (RFC 919)"},
		{"::/128", "unspecified (RFC 4291)"},
		{"::1/128", "loopback (RFC 4291)"},
		{"::2/128", "IPv4-compatible (RFC 4291)"},
		{"::127.0.0.1/128", "IPv4-compatible (RFC 4291)"},
		{"::ffff:127.0.0.1/128", "IPv4-mapped (RFC 4291)"},
		{"::ffff:0:127.0.0.1/128", "IPv4-translated (RFC 2765)"},
		{"64:ff9b::a9fe:a9fe/128", "IPv4 through translation (RFC 6052)"},
		{"64:ff9b:1::a9fe:a9fe/128", "IPv4 through translation (RFC 8215)"},
		{"64:ff9c::1/128", ""},
		{"100::1/128", "discard-only (RFC 6666)"},
		{"2001:0:a9fe:a9fe::1/128", "Teredo (RFC 4380)"},
		{"2001:1::1/128", ""},
		{"2001:db8::1/128", ""},
		{"2002::/16", "6to4 (RFC 3056)"},
		{"2002:a9fe:a9fe::1/128", "6to4 (RFC 3056)"},
		{"2003::1/128", ""},
		{"2600:1f18::1/128", ""},
		{"fd00::/48", ""},
		{"fd00::/16", ""},
		{"fd00:ec2::253/128", ""},
		{"fd00:ec2::254/128", "metadata of AWS"},
		{"fd20:ce::254/128", "metadata of Google Cloud"},
		{"fd20:ce::255/128", ""},
		{"fe80::1/128", "link-local (RFC 4291)"},
		{"febf::1/128", "link-local (RFC 4291)"},
		{"fec0::1/128", ""},
		{"ff02::1/128", "multicast (RFC 4291)"},
	} {
		if r, is := Special(netip.MustParsePrefix(test.prefix)); r.Name != test.name || is != (test.name != "") {
			t.Errorf("%s: %q (%v), want %q", test.prefix, r.Name, is, test.name)
		}
	}
	for _, text := range []string{"0.0.0.0/0", "0.0.0.0/1", "128.0.0.0/1", "168.0.0.0/7", "::/0", "2000::/3"} {
		if _, is := Special(netip.MustParsePrefix(text)); !is {
			t.Errorf("%s, a large part of everything, may be claimed", text)
		}
	}
}

// TestRangesAreSortedByWidth: each range is found by its first address, unless a narrower one precedes it.
func TestRangesAreSortedByWidth(t *testing.T) {
	t.Parallel()
	for i, r := range ranges {
		if r.Prefix != r.Prefix.Masked() || r.Name == "" {
			t.Errorf("%v is no range", r)
		}
		for _, before := range ranges[:i] {
			if before.Prefix.Overlaps(r.Prefix) && before.Prefix.Bits() <= r.Prefix.Bits() {
				t.Errorf("%s is never found: %s is before it", r.Prefix, before.Prefix)
			}
		}
	}
}
