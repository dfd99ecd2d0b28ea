package wire

import (
	"net"
	"net/netip"
	"testing"
)

func TestPodCIDRs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cidr CIDR
		want string
	}{
		"host bits are masked":     {CIDR{net.ParseIP("10.2.0.7"), net.CIDRMask(24, 32)}, "10.2.0.0/24"},
		"IPv6":                     {CIDR{net.ParseIP("fd02::1"), net.CIDRMask(64, 128)}, "fd02::/64"},
		"everything":               {CIDR{net.ParseIP("0.0.0.0"), net.CIDRMask(0, 32)}, "0.0.0.0/0"},
		"no address":               {CIDR{nil, net.CIDRMask(24, 32)}, ""},
		"empty mask":               {CIDR{net.ParseIP("10.2.0.0"), net.IPMask{}}, ""},
		"mask with a hole":         {CIDR{net.ParseIP("10.2.0.0"), net.IPv4Mask(255, 0, 255, 0)}, ""},
		"mask of the other family": {CIDR{net.ParseIP("10.2.0.0"), net.CIDRMask(24, 128)}, ""},
	} {
		got, ok := c.cidr.Prefix()
		if ok != (c.want != "") || ok && got.String() != c.want {
			t.Errorf("%s: %s, %v", name, got, ok)
		}
	}
}

func TestAnAddressOfANodeIsUnmapped(t *testing.T) {
	t.Parallel()
	if got := (NodeAddress{IP: net.ParseIP("::ffff:10.0.0.1")}).Addr(); got != netip.MustParseAddr("10.0.0.1") {
		t.Error(got)
	}
	if got := (NodeAddress{}).Addr(); got.IsValid() {
		t.Error(got)
	}
}

func TestNamedPortsThatCannotBeUsedAreLeftOut(t *testing.T) {
	t.Parallel()
	for port, want := range map[NamedPort]string{
		{"http", 80, "TCP"}:            "TCP",
		{"http", 80, "tcp"}:            "TCP",
		{"http", 80, ""}:               "TCP",
		{"dns", 53, "UDP"}:             "UDP",
		{"s-1", 53, "sctp"}:            "SCTP",
		{"x", 1, "ANY"}:                "",
		{"x", 1, "weird"}:              "",
		{"x", 0, "TCP"}:                "",
		{"", 1, "TCP"}:                 "",
		{"-x", 1, "TCP"}:               "",
		{"x-", 1, "TCP"}:               "",
		{"x--y", 1, "TCP"}:             "",
		{"8080", 1, "TCP"}:             "",
		{"under_score", 1, "TCP"}:      "",
		{"sixteen-letters-", 1, "TCP"}: "",
		{"sixteen-letterss", 1, "TCP"}: "",
		{"fifteen-letters", 1, "TCP"}:  "TCP",
	} {
		got, ok := usablePort(port.Name, uint64(port.Port), port.Protocol)
		if ok != (want != "") || got != want {
			t.Errorf("%+v: %q, %v", port, got, ok)
		}
	}
}
