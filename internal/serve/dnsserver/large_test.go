package dnsserver

import (
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest/viewtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// largeBackends is the number of backends of the large service.
const largeBackends = 60000

// largeService has backends with host names, of which every tenth terminates.
func largeService(version int) *services.Service {
	g := &services.Service{Cluster: "east", ClusterID: 2, Source: wire.SourceClusterMesh, Shared: true, Namespace: "shop", Name: "large"}
	ports := []services.Port{{Name: "http", Protocol: "TCP", Port: 8080}, {Name: "dns", Protocol: "UDP", Port: 53}}
	for i := range largeBackends {
		b := services.Backend{IP: netip.AddrFrom4([4]byte{10, byte(version), byte(i >> 8), byte(i)}), Ports: ports}
		if i%2 == 0 {
			b.Hostname = fmt.Sprint("large-", i)
		}
		if i%10 == 0 {
			b.Conditions = services.NotReady | services.IsTerminating
		}
		g.Backends = append(g.Backends, b)
	}
	return g
}

// largeQuestions are of all types and names, those that exist and others; {n} is a number of the question.
var largeQuestions = []struct {
	what, name string
	kind       uint16
	rcode      int
}{
	{"A", "large.shop.svc.clusterset.local.", dns.TypeA, dns.RcodeSuccess},
	{"AAAA", "large.shop.svc.clusterset.local.", dns.TypeAAAA, dns.RcodeSuccess},
	{"SRV", "large.shop.svc.clusterset.local.", dns.TypeSRV, dns.RcodeSuccess},
	{"TXT", "large.shop.svc.clusterset.local.", dns.TypeTXT, dns.RcodeSuccess},
	{"ANY", "large.shop.svc.clusterset.local.", dns.TypeANY, dns.RcodeSuccess},
	{"SOA", "clusterset.local.", dns.TypeSOA, dns.RcodeSuccess},
	{"NS", "clusterset.local.", dns.TypeNS, dns.RcodeSuccess},
	{"port", "_http._tcp.large.shop.svc.clusterset.local.", dns.TypeSRV, dns.RcodeSuccess},
	{"protocol", "_udp.large.shop.svc.clusterset.local.", dns.TypeSRV, dns.RcodeSuccess},
	{"no-port", "_p{n}._tcp.large.shop.svc.clusterset.local.", dns.TypeSRV, dns.RcodeNameError},
	{"no-protocol", "_p{n}.large.shop.svc.clusterset.local.", dns.TypeSRV, dns.RcodeNameError},
	{"host", "large-2{n}2.east.large.shop.svc.clusterset.local.", dns.TypeA, dns.RcodeSuccess},
	{"host-AAAA", "large-2{n}2.east.large.shop.svc.clusterset.local.", dns.TypeAAAA, dns.RcodeSuccess},
	{"terminating-host", "large-2{n}0.east.large.shop.svc.clusterset.local.", dns.TypeA, dns.RcodeNameError},
	{"dashed-host", "10-0-10-{n}1.east.large.shop.svc.clusterset.local.", dns.TypeA, dns.RcodeSuccess},
	{"no-host", "host-{n}.east.large.shop.svc.clusterset.local.", dns.TypeA, dns.RcodeNameError},
	{"no-dashed-host", "11-0-10-{n}1.east.large.shop.svc.clusterset.local.", dns.TypeA, dns.RcodeNameError},
	{"cluster", "east.large.shop.svc.clusterset.local.", dns.TypeA, dns.RcodeSuccess},
	{"no-cluster", "c{n}.large.shop.svc.clusterset.local.", dns.TypeA, dns.RcodeNameError},
	{"other-case", "LARGE.Shop.SVC.clusterset.local.", dns.TypeSRV, dns.RcodeSuccess},
	{"namespace", "many.svc.clusterset.local.", dns.TypeA, dns.RcodeNameError},
	{"shared-namespace", "shared.svc.clusterset.local.", dns.TypeA, dns.RcodeSuccess},
	{"own-tree", "large.shop.svc.east.internal.test.", dns.TypeA, dns.RcodeSuccess},
	{"own-tree-SRV", "large.shop.svc.east.internal.test.", dns.TypeSRV, dns.RcodeSuccess},
	{"PTR", "1.0.1.10.in-addr.arpa.", dns.TypePTR, dns.RcodeSuccess},
	{"node", "n1.node.east.internal.test.", dns.TypeA, dns.RcodeSuccess},
}

// newLargeServer has the large service, and a namespace of 50,000 services of which none is shared.
func newLargeServer(t testing.TB) (*viewtest.World, *Server) {
	t.Helper()
	w := viewtest.New(t)
	w.Play(t, "cluster east\nnode east n1 192.168.1.1\naddress east 10.1.0.1")
	all := []*services.Service{largeService(0), {Cluster: viewtest.Own, Source: wire.SourceLocal, Shared: true, Namespace: "shared", Name: "t"}}
	for i := range 50000 {
		all = append(all, &services.Service{Cluster: viewtest.Own, Source: wire.SourceLocal, Namespace: "many", Name: fmt.Sprint("s", i)})
		if i < 2000 {
			all = append(all, &services.Service{Cluster: viewtest.Own, Source: wire.SourceLocal, Namespace: "shared", Name: fmt.Sprint("s", i)})
		}
	}
	w.Apply(all...)
	s, err := New(Params{View: w.View, Cluster: viewtest.Own, MeshZone: "internal.test"})
	waittest.Must(t, err)
	return w, s
}

func (s *Server) askLarge(t testing.TB, name string, kind uint16, n int) (reply []byte) {
	q := new(dns.Msg).SetQuestion(strings.ReplaceAll(name, "{n}", fmt.Sprint(n%10)), kind).SetEdns0(udpSize, false)
	packed, err := q.Pack()
	waittest.Must(t, err)
	read, _ := s.check(packed, netip.MustParseAddr("127.0.0.1"))
	return s.respond(read, netip.MustParseAddr("127.0.0.1"), "tcp")
}

// allocated returns how many bytes of memory f allocates, on average.
func allocated(runs int, f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		f()
	}
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc-before.TotalAlloc) / runs //nolint:gosec // it grows
}

// forget drops the kept answers and namespaces.
func (s *Server) forget() {
	s.names.kept = &keptAnswers{seed: s.names.seed}
	s.names.spaces.all = nil
}

// TestAnAnswerCostsWhatItSends: no question allocates memory for a whole service, of any type and any name. The first
// question for each version of a service reads through the service, and allocates far less than the size of the
// service.
func TestAnAnswerCostsWhatItSends(t *testing.T) { //nolint:paralleltest // it counts the memory of the process
	_, s := newLargeServer(t)
	for _, of := range largeQuestions {
		m := new(dns.Msg)
		waittest.Must(t, m.Unpack(s.askLarge(t, of.name, of.kind, 3)))
		if m.Rcode != of.rcode {
			t.Errorf("%s: %s", of.what, m)
		}
		if again, allowed := allocated(20, func() { s.askLarge(t, of.name, of.kind, 4) }), 4096+16*m.Len(); again > allowed {
			t.Errorf("%s: %d bytes of memory, want at most %d", of.what, again, allowed)
		}
		if first := allocated(1, func() { s.forget(); s.askLarge(t, of.name, of.kind, 4) }); first > 20*largeBackends {
			t.Errorf("%s: %d bytes of memory for the first one", of.what, first)
		}
	}
}

// BenchmarkLargeService asks each kind of question to a service of 60,000 backends: with answers that are kept, and
// with a service that is new for each question.
func BenchmarkLargeService(b *testing.B) {
	_, s := newLargeServer(b)
	for _, of := range largeQuestions {
		b.Run(of.what, func(b *testing.B) {
			b.ReportAllocs()
			s.askLarge(b, of.name, of.kind, 0)
			for n := 0; b.Loop(); n++ {
				s.askLarge(b, of.name, of.kind, n)
			}
		})
	}
	for _, of := range largeQuestions {
		b.Run("new/"+of.what, func(b *testing.B) {
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				s.forget()
				s.askLarge(b, of.name, of.kind, n)
			}
		})
	}
}
