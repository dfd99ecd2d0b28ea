package dnsserver

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/mesh-agent/mesh-agent/internal/meshtest/viewtest"
	"github.com/mesh-agent/mesh-agent/internal/waiting/waittest"
	"github.com/mesh-agent/mesh-agent/pkg/backends"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

func newServer(t testing.TB, w *viewtest.World) *Server {
	t.Helper()
	s, err := New(Params{View: w.View, Cluster: viewtest.Own, MeshZone: "internal.test", Asker: backends.Asker{Zone: "a"}, Answers: 4})
	waittest.Must(t, err)
	return s
}

// TestBothWaysSayTheSame: an answer that is kept is the one that would be made, and both are the
// choice, whatever has changed before.
func TestBothWaysSayTheSame(t *testing.T) {
	t.Parallel()
	w := viewtest.New(t)
	s := newServer(t, w)
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	loopback := netip.MustParseAddr("127.0.0.1")
	quick := 0
	w.Play(t, "export east shop/cart") // imported or not, by turns
	for range 3000 {
		name := pick("cart", "toys", "books")
		line := "service " + pick("own", "east", "west") + " shop/" + name + pick("", " affinity=local", " affinity=remote", " shared=false")
		for n := range rng.IntN(8) {
			line += " " + pick("10.0.0.", "fd00::") + fmt.Sprint(n+1) + pick("", "", ",zone=a", ",state=terminating", ",state=dead")
		}
		if rng.IntN(5) == 0 {
			line = "use " + pick("east", "west") + " " + pick("full", "demoted", "withdrawn")
		}
		if rng.IntN(10) == 0 {
			line = "service own shop/" + wire.DerivedServiceName("shop", "cart") + pick("", " addresses=241.0.0.1,fd00::f1")
		}
		waittest.Must(t, w.Do(line))
		q := new(dns.Msg)
		q.SetQuestion(pick("cart", "Toys", "books")+pick(".shop.svc.clusterset.local.", ".Shop.svc.clusterset.local."), []uint16{dns.TypeA, dns.TypeAAAA}[rng.IntN(2)])
		q.RecursionDesired, q.CheckingDisabled = rng.IntN(2) == 0, rng.IntN(2) == 0
		if rng.IntN(2) == 0 {
			q.SetEdns0(4096, false)
		}
		long := s.answer(q, loopback)
		want := slices.Sorted(slices.Values(addresses(long)))
		if text := s.quick(q, loopback, 1232); text != nil {
			quick++
			m := new(dns.Msg)
			if err := m.Unpack(text); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if got := slices.Sorted(slices.Values(addresses(m))); !slices.Equal(got, want) || m.Question[0] != q.Question[0] {
				t.Fatalf("seed %d: after %q: %s\ngot  %s\nwant %s", seed, line, q.Question[0].String(), got, want)
			}
			m.Answer, long.Answer, m.Compress, long.Compress = nil, nil, false, false
			if diff := cmp.Diff(long.String(), m.String()); diff != "" {
				t.Fatalf("seed %d: -long +quick:\n%s", seed, diff)
			}
		}
		short, _, _ := strings.Cut(strings.ToLower(q.Question[0].Name), ".")
		var chosen []string
		g, ips := s.names.find(w.View.DB.ReadTxn(), "shop", short)
		if g != nil && len(ips) == 0 {
			serviceOf := serviceName{answer: &answer{resolver: &s.names}}
			for _, b := range serviceOf.part(backends.Choose(g, backends.Port{}, s.names.asker).Now()) {
				ips = append(ips, b.IP)
			}
		}
		for _, ip := range ips {
			if ip.Is4() == (q.Question[0].Qtype == dns.TypeA) {
				chosen = append(chosen, ip.String())
			}
		}
		if slices.Sort(chosen); !slices.Equal(chosen, want) {
			t.Fatalf("seed %d: after %q: %s\ngot    %s\nchosen %s", seed, line, q.Question[0].String(), want, chosen)
		}
	}
	if quick < 500 {
		t.Errorf("only %d answers were kept ones", quick)
	}
}

func addresses(m *dns.Msg) (all []string) {
	for _, rr := range m.Answer {
		switch rr := rr.(type) {
		case *dns.A:
			all = append(all, rr.A.String())
		case *dns.AAAA:
			all = append(all, rr.AAAA.String())
		}
	}
	return all
}

// FuzzMessage: whatever comes in a packet, the answer can be sent.
func FuzzMessage(f *testing.F) {
	w := viewtest.New(f)
	w.Play(f, `
		cluster east cached
		service own shop/cart ports=http:80 10.0.0.1,host=cart-0 fd00::1
		service east shop/cart 10.1.0.1
		node east n1 192.168.1.1
		address east 10.1.0.1
	`)
	s := newServer(f, w)
	for _, name := range []string{"cart.shop.svc.clusterset.local.", "_http._tcp.cart.shop.svc.clusterset.local.", "n1.node.east.internal.test.", "1.0.1.10.in-addr.arpa.", `\255.`} {
		q := new(dns.Msg)
		q.SetQuestion(name, dns.TypeSRV)
		q.SetEdns0(512, true)
		text, err := q.Pack()
		waittest.Must(f, err)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		q := new(dns.Msg)
		if q.Unpack(text) != nil || len(q.Question) != 1 { // which the library refuses
			return
		}
		size := sizeFor(q, "udp")
		if m := s.quick(q, netip.MustParseAddr("10.0.0.1"), size); m != nil && new(dns.Msg).Unpack(m) != nil {
			t.Errorf("%x cannot be read", m)
		}
		m := s.answer(q, netip.MustParseAddr("10.0.0.1"))
		m.Truncate(size)
		out, err := m.Pack()
		if err != nil || len(out) > size {
			t.Errorf("%d bytes of %d: %v", len(out), size, err)
		}
	})
}
