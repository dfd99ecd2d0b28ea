package dnsserver_test

import (
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/mesh-agent/mesh-agent/internal/serve/dnsserver"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest/viewtest"
)

// TestOnlyZonesOfServicesByDefault: the zone of the mesh, with the names of addresses, is served only if it is
// configured (mcs.md A).
func TestOnlyZonesOfServicesByDefault(t *testing.T) {
	t.Parallel()
	w := viewtest.New(t)
	w.Play(t, "cluster east\nservice east shop/cart 10.1.0.1\nnode east n1 192.168.1.1")
	s := serve(t, dnsserver.Params{View: w.View})
	for name, kind := range map[string]uint16{
		"cart.shop.svc.east.internal.test.":    dns.TypeA,
		"n1.node.east.internal.test.":          dns.TypeA,
		"1.1.168.192.in-addr.arpa.":            dns.TypePTR,
		"1.0.0.0.0.0.0.0.d.f.ip6.arpa.":        dns.TypePTR,
		"cart.shop.svc.cluster.local.":         dns.TypeA,
		"cart.shop.svc.east.clusterset.local.": dns.TypeA,
	} {
		want := dns.RcodeRefused
		if dns.IsSubDomain("clusterset.local.", name) {
			want = dns.RcodeNameError
		}
		if m := ask(t, s, "udp", name, kind, 1232); m.Rcode != want || len(m.Answer) > 0 {
			t.Errorf("%s: %s", name, m)
		}
	}
}

// TestTTL: answers have the TTL that is set, negative ones 300 seconds at most, and the record of the version its own
// (mcs.md A).
func TestTTL(t *testing.T) {
	t.Parallel()
	w := many(t, 1)
	for _, ttl := range []time.Duration{0, 5 * time.Second, time.Hour} {
		s := serve(t, dnsserver.Params{View: w.View, TTL: &ttl})
		want := uint32(ttl / time.Second)
		for _, kind := range []uint16{dns.TypeA, dns.TypeSRV} {
			m := ask(t, s, "udp", cart, kind, 1232)
			if len(m.Answer) != 1 || m.Answer[0].Header().Ttl != want {
				t.Errorf("%s: %s", ttl, m)
			}
		}
		m := ask(t, s, "udp", "nope."+cart, dns.TypeA, 1232)
		if soa, is := m.Ns[0].(*dns.SOA); !is || soa.Hdr.Ttl != min(want, 300) || soa.Minttl != want {
			t.Errorf("%s: %s", ttl, m)
		}
		if m := ask(t, s, "udp", "dns-version.clusterset.local.", dns.TypeTXT, 1232); len(m.Answer) != 1 || m.Answer[0].Header().Ttl != 28800 {
			t.Errorf("%s: %s", ttl, m)
		}
	}
}
