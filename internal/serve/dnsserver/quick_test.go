package dnsserver

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/mesh-agent/mesh-agent/pkg/backends"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest/viewtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func newServer(t testing.TB, w *viewtest.World) *Server {
	t.Helper()
	s, err := New(Params{View: w.View, Cluster: viewtest.Own, MeshZone: "internal.test", Asker: backends.Asker{Zone: "a"}, Answers: 4})
	waittest.Must(t, err)
	return s
}

// TestBothWaysSayTheSame: a kept answer is the same as a newly made one, and both have the chosen backends, after any
// sequence of changes.
func TestBothWaysSayTheSame(t *testing.T) {
	t.Parallel()
	w := viewtest.New(t)
	s := newServer(t, w)
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	quick := 0
	w.Play(t, "export east shop/cart") // imported at some times, and at others not
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
		read := queryOf(t, q)
		long := s.answer(read)
		want := slices.Sorted(slices.Values(addresses(long)))
		if text := s.quick(read, 1232); text != nil {
			quick++
			m := new(dns.Msg)
			if err := m.Unpack(text); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if got := slices.Sorted(slices.Values(addresses(m))); !slices.Equal(got, want) || m.Question[0] != q.Question[0] {
				t.Fatalf("seed %d: after %q: %s\ngot  %s\nwant %s", seed, line, q.Question[0].String(), got, want)
			}
			m.Answer, long.Answer, m.Compress, long.Compress = nil, nil, false, false
			if diff := gocmp.Diff(long.String(), m.String()); diff != "" {
				t.Fatalf("seed %d: -long +quick:\n%s", seed, diff)
			}
		}
		short, _, _ := strings.Cut(strings.ToLower(q.Question[0].Name), ".")
		var chosen []string
		g, ips := s.names.find(w.View.DB.ReadTxn(), "shop", short)
		if g != nil && len(ips) == 0 {
			ips = chosenOf(&s.names, g, q.Question[0].Qtype == dns.TypeA)
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

// chosenOf is the part of the choice that answers have, made in the simplest way.
func chosenOf(r *resolver, g *services.Global, v4 bool) (all []netip.Addr) {
	for _, b := range backends.Choose(g, backends.Port{}, r.asker).Now() {
		if b.IP.Is4() == v4 {
			all = append(all, b.IP)
		}
	}
	slices.SortFunc(all, func(a, b netip.Addr) int { return cmp.Compare(r.scoreOf(a), r.scoreOf(b)) })
	return all[:min(len(all), r.most)]
}
