package nodes

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// describe formats a claim in one line.
func (c Claim) describe() string {
	return fmt.Sprintf("%s %s via %s key %d", c.Role, c.Prefix, c.HostIP, c.EncryptionKey)
}

func describe(claims []Claim) []string {
	var out []string
	for _, c := range claims {
		out = append(out, c.describe())
	}
	return out
}

func TestClaimsOfGoldenNodes(t *testing.T) {
	t.Parallel()
	const none = "via invalid IP key 0"
	want := map[string][]string{
		"cluster2/node1": {
			"address 10.2.0.5/32 via 192.168.2.10 key 0",
			"address 192.168.2.10/32 " + none,
			"pod-cidr 10.2.0.0/24 via 192.168.2.10 key 0",
			"health 10.2.0.9/32 via 192.168.2.10 key 0",
		},
		"cluster2/node2": {
			"address fd00:2::10/128 " + none,
			"address fd02::5/128 via fd00:2::10 key 0",
			"pod-cidr fd02:0:0:1::/64 via fd00:2::10 key 0",
			"health fd02::9/128 via fd00:2::10 key 0",
			"ingress fd02::a/128 via fd00:2::10 key 0",
		},
		"cluster2/node3.example.com": {
			"address 10.2.2.5/32 via 192.168.2.12 key 0",
			"address 192.168.2.12/32 " + none,
			"address 203.0.113.12/32 " + none,
			"address fd00:2::12/128 " + none,
			"address fd02:0:0:2::5/128 via fd00:2::12 key 0",
			"pod-cidr 10.2.2.0/24 via 192.168.2.12 key 3",
			"pod-cidr 10.2.3.0/24 via 192.168.2.12 key 3",
			"pod-cidr 10.2.4.0/23 via 192.168.2.12 key 3",
			"pod-cidr fd02:0:0:2::/64 via fd00:2::12 key 3",
			"pod-cidr fd02:0:0:3::/64 via fd00:2::12 key 3",
			"health 10.2.2.9/32 via 192.168.2.12 key 3",
			"health fd02:0:0:2::9/128 via fd00:2::12 key 3",
			"ingress 10.2.2.10/32 via 192.168.2.12 key 3",
			"ingress fd02:0:0:2::a/128 via fd00:2::12 key 3",
		},
		"cluster2/wg": {
			"address 192.168.2.13/32 " + none,
			"pod-cidr 10.2.5.0/24 via 192.168.2.13 key 255",
		},
		"cluster3/eni":   {"address 192.168.3.7/32 " + none},
		"cluster2/v4in6": {"address 192.168.2.77/32 " + none},
	}
	for key, n := range goldenNodes(t) {
		if diff := cmp.Diff(want[key], describe(n.Claims())); diff != "" {
			t.Errorf("%s: %s", key, diff)
		}
	}
}

func TestClaims(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		node Node
		want []string
	}{
		"names are no claims, even with an address": {
			Node{Addresses: []Address{{"Hostname", ip("192.0.2.1")}, {"InternalDNS", ip("192.0.2.2")}, {"ExternalDNS", ip("192.0.2.3")}}},
			nil,
		},
		"an address given twice is claimed once, with the tunnel": {
			Node{Addresses: []Address{{"InternalIP", ip("192.0.2.1")}, {"ExternalIP", ip("192.0.2.2")}, {"CiliumInternalIP", ip("192.0.2.2")}, {"InternalIP", ip("192.0.2.1")}}},
			[]string{"address 192.0.2.1/32 via invalid IP key 0", "address 192.0.2.2/32 via 192.0.2.1 key 0"},
		},
		"one prefix in two roles is two claims": {
			Node{Addresses: []Address{{"InternalIP", ip("192.0.2.1")}}, HealthIPs: []netip.Addr{ip("192.0.2.1")}, PodCIDRs: []netip.Prefix{cidr("192.0.2.1/32"), cidr("192.0.2.1/32")}},
			[]string{"address 192.0.2.1/32 via invalid IP key 0", "pod-cidr 192.0.2.1/32 via 192.0.2.1 key 0", "health 192.0.2.1/32 via 192.0.2.1 key 0"},
		},
		"IPv6 pods of a node that only has an IPv4 address": {
			Node{Addresses: []Address{{"InternalIP", ip("192.0.2.1")}}, PodCIDRs: []netip.Prefix{cidr("fd00::/64")}},
			[]string{"address 192.0.2.1/32 via invalid IP key 0", "pod-cidr fd00::/64 via 192.0.2.1 key 0"},
		},
		"pods of a node without address have no tunnel": {
			Node{PodCIDRs: []netip.Prefix{cidr("10.0.0.0/24")}, EncryptionKey: 3},
			[]string{"pod-cidr 10.0.0.0/24 via invalid IP key 3"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, describe(tc.node.Claims())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestHostIP(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		addresses []Address
		want4     string
	}{
		"the first internal one":             {[]Address{{"ExternalIP", ip("192.0.2.1")}, {"InternalIP", ip("192.0.2.2")}, {"InternalIP", ip("192.0.2.3")}}, "192.0.2.2"},
		"else the last external one":         {[]Address{{"Other", ip("192.0.2.1")}, {"ExternalIP", ip("192.0.2.2")}, {"ExternalIP", ip("192.0.2.3")}}, "192.0.2.3"},
		"else the first of any other type":   {[]Address{{"CiliumInternalIP", ip("192.0.2.1")}, {"Other", ip("192.0.2.2")}, {"Another", ip("192.0.2.3")}}, "192.0.2.2"},
		"never the one in the pod network":   {[]Address{{"CiliumInternalIP", ip("192.0.2.1")}}, "invalid IP"},
		"of its own family before the other": {[]Address{{"InternalIP", ip("fd00::1")}, {"Other", ip("192.0.2.2")}}, "192.0.2.2"},
		"else of the other family":           {[]Address{{"InternalIP", ip("fd00::1")}}, "fd00::1"},
		"none without addresses":             {nil, "invalid IP"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := Node{Addresses: tc.addresses}
			if got := n.HostIP(false).String(); got != tc.want4 {
				t.Errorf("got %s, want %s", got, tc.want4)
			}
		})
	}
}

func TestRoles(t *testing.T) {
	t.Parallel()
	want := map[Role]struct {
		name     string
		identity uint32
	}{
		RoleAddress: {"address", 6},
		RolePodCIDR: {"pod-cidr", 2},
		RoleHealth:  {"health", 4},
		RoleIngress: {"ingress", 8},
		99:          {"unknown", 2},
	}
	for role, w := range want {
		if role.String() != w.name || role.Identity() != w.identity {
			t.Errorf("role %d: %s, %d", role, role, role.Identity())
		}
	}
}

func drawAddr(t *rapid.T) netip.Addr {
	n := byte(rapid.IntRange(1, 4).Draw(t, "host"))
	if rapid.Bool().Draw(t, "v6") {
		return netip.AddrFrom16([16]byte{0: 0xfd, 15: n})
	}
	return netip.AddrFrom4([4]byte{10, 0, 0, n})
}

func drawNode(t *rapid.T) *Node {
	types := rapid.SampledFrom([]string{wire.AddressInternalIP, wire.AddressExternalIP, wire.AddressCiliumInternalIP, wire.AddressHostname, "Other"})
	addrs := rapid.SliceOfN(rapid.Custom(drawAddr), 0, 3)
	n := &Node{
		Addresses: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Address {
			return Address{types.Draw(t, "type"), drawAddr(t)}
		}), 0, 5).Draw(t, "addresses"),
		HealthIPs:     addrs.Draw(t, "health"),
		IngressIPs:    addrs.Draw(t, "ingress"),
		EncryptionKey: rapid.Uint8().Draw(t, "key"),
	}
	for _, a := range addrs.Draw(t, "pods") {
		p, _ := a.Prefix(a.BitLen() - 2)
		n.PodCIDRs = append(n.PodCIDRs, p)
	}
	return n
}

// TestClaimsProperties compares the claims with a naive implementation of the rule.
func TestClaimsProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := drawNode(t)
		type subject struct {
			role   Role
			prefix netip.Prefix
		}
		want := make(map[subject]bool)
		for _, a := range n.Addresses {
			if a.Type != wire.AddressHostname {
				want[subject{RoleAddress, host(a.IP)}] = true
			}
		}
		for _, p := range n.PodCIDRs {
			want[subject{RolePodCIDR, p}] = true
		}
		for _, a := range n.HealthIPs {
			want[subject{RoleHealth, host(a)}] = true
		}
		for _, a := range n.IngressIPs {
			want[subject{RoleIngress, host(a)}] = true
		}
		got := n.Claims()
		if !slices.IsSortedFunc(got, compareClaims) {
			t.Fatalf("not sorted: %v", describe(got))
		}
		for _, c := range got {
			s := subject{c.Role, c.Prefix}
			if !want[s] {
				t.Fatalf("%s: not asked for, or given twice", c.describe())
			}
			delete(want, s)
			router := slices.Contains(n.Addresses, Address{wire.AddressCiliumInternalIP, c.Prefix.Addr()})
			if tunnelled := c.Role != RoleAddress || router; !tunnelled && c.HostIP.IsValid() {
				t.Fatalf("%s: has a tunnel", c.describe())
			} else if tunnelled && c.HostIP != n.HostIP(c.Prefix.Addr().Is6()) {
				t.Fatalf("%s: wrong tunnel", c.describe())
			}
		}
		if len(want) > 0 {
			t.Fatalf("missing: %v", want)
		}
	})
}
