package dnsserver

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/miekg/dns"

	"github.com/mesh-agent/mesh-agent/simtest/meshtest/viewtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// queryOf is a question as the server reads it.
func queryOf(t testing.TB, m *dns.Msg) *query {
	t.Helper()
	packed, err := m.Pack()
	waittest.Must(t, err)
	q, rcode := parse(packed)
	if rcode != dns.RcodeSuccess {
		t.Fatalf("%s: %s", m, dns.RcodeToString[rcode])
	}
	return &q
}

// BenchmarkOneAnswer measures how long it takes to read a question and to answer it, without the sockets. The floor is
// one fixed record, packed by the library.
func BenchmarkOneAnswer(b *testing.B) {
	w := viewtest.New(b)
	for i := range 2000 {
		line := fmt.Sprintf("service east shop/s%d ports=http:80", i)
		for n := range 10 {
			line += fmt.Sprintf(" 10.%d.%d.%d,host=s-%d", i>>8, i&255, n+1, n)
		}
		w.Play(b, line)
	}
	w.Play(b, "cluster east")
	s, err := New(Params{View: w.View})
	waittest.Must(b, err)
	record, err := dns.NewRR("s.shop.svc.clusterset.local. 5 IN A 10.0.0.1")
	waittest.Must(b, err)
	peer := netip.MustParseAddr("127.0.0.1")
	question := func(name string, kind uint16) *dns.Msg {
		return new(dns.Msg).SetQuestion(name, kind).SetEdns0(udpSize, false)
	}
	b.Run("floor", func(b *testing.B) {
		q := question("s.shop.svc.clusterset.local.", dns.TypeA)
		for b.Loop() {
			m := new(dns.Msg)
			m.SetReply(q)
			m.Answer = []dns.RR{record}
			_, _ = m.Pack()
		}
	})
	for _, of := range []struct {
		what, name string
		kind       uint16
	}{
		{"A", "s%d.shop.svc.clusterset.local.", dns.TypeA},
		{"SRV", "_http._tcp.s%d.shop.svc.clusterset.local.", dns.TypeSRV},
		{"backend", "s-3.east.s%d.shop.svc.clusterset.local.", dns.TypeA},
		{"NODATA", "s%d.shop.svc.clusterset.local.", dns.TypeAAAA},
		{"NXDOMAIN", "t%d.shop.svc.clusterset.local.", dns.TypeA},
	} {
		b.Run(of.what, func(b *testing.B) {
			var all [][]byte
			for i := range 100 { // so few that the kept answers stay
				packed, err := question(fmt.Sprintf(of.name, i), of.kind).Pack()
				waittest.Must(b, err)
				all = append(all, packed)
			}
			for i := 0; b.Loop(); i++ {
				q, _ := s.check(all[i%len(all)], peer)
				s.respond(q, peer, "udp")
			}
		})
	}
}
