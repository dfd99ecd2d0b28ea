package dnsserver

import (
	"fmt"
	"net"
	"testing"

	"github.com/miekg/dns"

	"github.com/mesh-agent/mesh-agent/internal/meshtest/viewtest"
	"github.com/mesh-agent/mesh-agent/internal/waiting/waittest"
)

// writer takes answers as a socket does, which needs them packed.
type writer struct {
	dns.ResponseWriter
	from net.Addr
}

func (w *writer) RemoteAddr() net.Addr          { return w.from }
func (w *writer) Write(m []byte) (int, error)   { return len(m), nil }
func (w *writer) WriteMsg(m *dns.Msg) (e error) { _, e = m.Pack(); return e }

// BenchmarkOneAnswer: what it takes to answer a question that was read, without the sockets. The floor is one
// fixed record, as the library packs it.
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
	to := &writer{from: &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1).To4(), Port: 1}}
	question := func(name string, kind uint16) *dns.Msg {
		return new(dns.Msg).SetQuestion(name, kind).SetEdns0(udpSize, false)
	}
	b.Run("floor", func(b *testing.B) {
		q := question("s.shop.svc.clusterset.local.", dns.TypeA)
		for b.Loop() {
			m := new(dns.Msg)
			m.SetReply(q)
			m.Answer = []dns.RR{record}
			_ = to.WriteMsg(m)
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
			var all []*dns.Msg
			for i := range 100 { // so few that answers that are kept stay
				all = append(all, question(fmt.Sprintf(of.name, i), of.kind))
			}
			for i := 0; b.Loop(); i++ {
				s.serve(to, all[i%len(all)], "udp")
			}
		})
	}
}
