package dnsserver

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/mesh-agent/mesh-agent/internal/base/boundary"
	"github.com/mesh-agent/mesh-agent/internal/serve/transport"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest/viewtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// start runs a server whose zone of services calls instead first, for a name below the zone.
func start(t *testing.T, p Params, instead func(label string)) *Server {
	t.Helper()
	s, err := New(p)
	waittest.Must(t, err)
	for i := range s.names.zones {
		z := &s.names.zones[i]
		find := z.find
		z.find = func(a *answer, labels []string) { instead(labels[0]); find(a, labels) }
	}
	waittest.Must(t, s.Listen("127.0.0.1:0"))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return s
}

func exchange(t *testing.T, s *Server, network, name string, kind uint16) *dns.Msg {
	t.Helper()
	c := dns.Client{Net: network, Timeout: time.Minute}
	m, _, err := c.Exchange(new(dns.Msg).SetQuestion(name, kind), s.Address())
	waittest.Must(t, err)
	return m
}

// TestAFailureEndsOneQuestion: its client gets SERVFAIL, the failure is counted, and others are answered, also on the
// same connection.
func TestAFailureEndsOneQuestion(t *testing.T) {
	t.Parallel()
	w := viewtest.New(t)
	w.Play(t, "service own shop/cart 10.0.0.1")
	failures, metrics := boundary.New(nil), NewMetrics()
	s := start(t, Params{View: w.View, Boundary: failures.Part("dns"), Metrics: metrics}, func(label string) {
		if label == "fails" {
			panic("of the test")
		}
	})
	for n, network := range []string{"udp", "tcp"} {
		conn, err := dns.Dial(network, s.Address())
		waittest.Must(t, err)
		defer conn.Close()
		for _, name := range []string{"fails", "cart", "fails", "cart"} {
			waittest.Must(t, conn.WriteMsg(new(dns.Msg).SetQuestion(name+".shop.svc.clusterset.local.", dns.TypeSRV)))
			m, err := conn.ReadMsg()
			waittest.Must(t, err)
			if failed := m.Rcode == dns.RcodeServerFailure; failed != (name == "fails") || len(m.Question) != 1 {
				t.Errorf("%s: %s: %s", network, name, m)
			}
		}
		if got := testutil.ToFloat64(failures.WithLabelValues("dns")); got != float64(2*(n+1)) {
			t.Errorf("%s: %v failures", network, got)
		}
		waittest.Until(t, "the answers to be counted", func() bool {
			return testutil.ToFloat64(metrics.queries.WithLabelValues(network, "SRV", "SERVFAIL")) == 2
		})
	}
}

// TestAClientHasAShare: a client with many questions has a part of the places, and other clients have theirs.
func TestAClientHasAShare(t *testing.T) {
	t.Parallel()
	w := viewtest.New(t)
	w.Play(t, "service own shop/cart 10.0.0.1")
	var waiting atomic.Int32
	release, metrics := make(chan struct{}), NewMetrics()
	released := sync.OnceFunc(func() { close(release) })
	s := start(t, Params{View: w.View, Queries: 8, Metrics: metrics}, func(label string) {
		if label == "slow" {
			waiting.Add(1)
			<-release
		}
	})
	t.Cleanup(released) // before the server ends
	conn, err := dns.Dial("udp", s.Address())
	waittest.Must(t, err)
	defer conn.Close()
	for range 5 {
		waittest.Must(t, conn.WriteMsg(new(dns.Msg).SetQuestion("slow.shop.svc.clusterset.local.", dns.TypeSRV)))
	}
	waittest.Until(t, "one client to have its share, and no more", func() bool {
		return waiting.Load() == 2 && testutil.ToFloat64(s.queries.own) == 3
	})
	if m := exchange(t, s, "tcp", "cart.shop.svc.clusterset.local.", dns.TypeA); m.Rcode != dns.RcodeServerFailure {
		t.Errorf("beyond the share over TCP: %s", m)
	}
	for n, of := range []string{"10.0.0.1", "10.0.0.1", "2001:db8::1", "2001:db8::2", "fe80::1", "fe80::2"} {
		if !s.queries.take(netip.MustParseAddr(of)) {
			t.Errorf("%d: %s has no place", n, of)
		}
	}
	if s.queries.take(netip.MustParseAddr("10.0.0.2")) || testutil.ToFloat64(s.queries.all) != 1 {
		t.Errorf("there are more than 8 places: %v", testutil.ToFloat64(s.queries.all))
	}
	released()
	waittest.Until(t, "the places to be free", func() bool { return s.queries.Sum() == 6 })
	if m := exchange(t, s, "udp", "cart.shop.svc.clusterset.local.", dns.TypeA); len(m.Answer) != 1 {
		t.Errorf("afterwards: %s", m)
	}
}

// TestConnectionsHoldNoPlaces: a client that sends slowly, or nothing, holds a connection but no place.
func TestConnectionsHoldNoPlaces(t *testing.T) {
	t.Parallel()
	w := viewtest.New(t)
	w.Play(t, "service own shop/cart 10.0.0.1")
	s := start(t, Params{View: w.View, Queries: 4, TCP: transport.Limit{All: 10, Peer: 10}}, func(string) {})
	for _, part := range []string{"", "\x00", "\x00\x20", "\x00\x20half of it"} {
		conn, err := dns.Dial("tcp", s.Address())
		waittest.Must(t, err)
		defer conn.Close()
		_, err = conn.Conn.Write([]byte(part))
		waittest.Must(t, err)
	}
	waittest.Until(t, "four connections", func() bool { return s.open.Sum() == 4 })
	for _, network := range []string{"udp", "tcp"} {
		if m := exchange(t, s, network, "cart.shop.svc.clusterset.local.", dns.TypeA); len(m.Answer) != 1 {
			t.Errorf("%s: %s", network, m)
		}
	}
	waittest.Until(t, "no place to be taken", func() bool { return s.queries.Sum() == 0 })
}

func TestOwners(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"10.0.0.1": "10.0.0.1", "::ffff:10.0.0.1": "10.0.0.1", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::", "fe80::1%eth0": "fe80::1",
		"127.0.0.1": "127.0.0.1", "127.0.0.7": "127.0.0.1", "::1": "127.0.0.1",
	} {
		if got := ownerOf(netip.MustParseAddr(text)); got != netip.MustParseAddr(want) {
			t.Errorf("%s: %s", text, got)
		}
	}
	for text, want := range map[string]bool{
		"10.0.0.1:53": true, "[fd00::1]:5": true, "10.0.0.1:0": false, "0.0.0.0:5": false, "255.255.255.255:5": false, "224.0.0.251:5353": false, "[ff02::fb]:5353": false,
	} {
		if got := isAnswerable(netip.MustParseAddrPort(text)); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

// TestFamiliesHaveTheirParts: many backends of one family leave room for those of the other in an answer.
func TestFamiliesHaveTheirParts(t *testing.T) {
	t.Parallel()
	w := viewtest.New(t)
	line := "service east shop/cart"
	for n := range 300 {
		line += fmt.Sprintf(" 10.0.%d.%d", n/200, n%200+1)
	}
	w.Play(t, line+" fd00::1 fd00::2")
	s := newServer(t, w) // of 4 backends
	for kind, want := range map[uint16]int{dns.TypeA: 4, dns.TypeAAAA: 2, dns.TypeSRV: 4, dns.TypeANY: 4} {
		q := queryOf(t, new(dns.Msg).SetQuestion("cart.shop.svc.clusterset.local.", kind))
		if m := s.answer(q); len(m.Answer) != want {
			t.Errorf("%s", m)
		}
	}
}

// TestSpellingsAreOneName: the answer for a service is kept once for all spellings of its name.
func TestSpellingsAreOneName(t *testing.T) {
	t.Parallel()
	w := viewtest.New(t)
	w.Play(t, "service east shop/cart 10.0.0.1,host=h")
	s := newServer(t, w)
	spell := func(name string) string {
		return strings.Map(func(r rune) rune { return []rune{r, []rune(strings.ToUpper(string(r)))[0]}[rand.IntN(2)] }, name)
	}
	once := int64(0)
	for n := range 1000 {
		for _, of := range []string{"", "_http._tcp.", "h.east."} {
			for _, kind := range []uint16{dns.TypeA, dns.TypeSRV} {
				q := queryOf(t, new(dns.Msg).SetQuestion(spell(of+"cart.shop.svc.clusterset.local."), kind))
				if m := s.answer(q); m.Rcode != dns.RcodeSuccess || m.Question[0].Name != q.name {
					t.Fatalf("%s", m)
				}
			}
		}
		if n == 0 {
			once = s.names.kept.bytes
		}
	}
	if s.names.kept.bytes != once {
		t.Errorf("%d bytes are kept, %d for one spelling", s.names.kept.bytes, once)
	}
}

// TestKeptIsBounded: kept answers are bounded in bytes, made once for all clients that ask at the same time, and never
// of an old version of a service.
func TestKeptIsBounded(t *testing.T) {
	t.Parallel()
	k := &keptAnswers{}
	k.seed = newServer(t, viewtest.New(t)).names.seed
	keyOf := func(n int) keptKey { return keptKey{namespace: "shop", name: fmt.Sprint(n)} }
	g := &services.Global{Namespace: "shop"}
	for n := range 2000 {
		remember(k, keyOf(n), g, func() (int, int64) { return n, mostKeptOne / int64(1+n%100) })
	}
	remember(k, keyOf(-1), g, func() (int, int64) { return 0, mostKeptOne + 1 }) // this one is not kept
	sum, count := int64(0), 0
	for i := range k.all {
		for j := range k.all[i] {
			if e := k.all[i][j].Load(); e != nil {
				sum += e.bytes
				count++
			}
		}
	}
	if sum != k.bytes || sum > mostKept || sum < mostKept/2 || count < 10 {
		t.Errorf("%d things are kept, of %d bytes, which are counted as %d", count, sum, k.bytes)
	}
	var made atomic.Int32
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if remember(k, keyOf(7), g, func() (int, int64) { made.Add(1); return 7, 1 }) != 7 {
				t.Error("another value")
			}
		})
	}
	all.Wait()
	if n := made.Load(); n > 1 {
		t.Errorf("made %d times", n)
	}
	old := weak.Make(g)
	runtime.KeepAlive(g)
	g = nil
	waittest.Until(t, "the service to be collected", func() bool { runtime.GC(); return old.Value() == nil })
}

// FuzzMessage: for any message, an answer, if there is one, belongs to it, fits, and can be read.
func FuzzMessage(f *testing.F) {
	w := viewtest.New(f)
	w.Play(f, `
		cluster east cached
		service own shop/cart ports=http:80 10.0.0.1,host=cart-0 fd00::1
		service east shop/cart 10.1.0.1
		node east n1 192.168.1.1
		address east 10.1.0.1
	`)
	failures := boundary.New(nil)
	s, err := New(Params{View: w.View, Cluster: viewtest.Own, MeshZone: "internal.test", Answers: 4, Boundary: failures.Part("dns")})
	waittest.Must(f, err)
	for _, name := range []string{"cart.shop.svc.clusterset.local.", "_http._tcp.cart.shop.svc.clusterset.local.", "cart-0.own.cart.shop.svc.clusterset.local.", "n1.node.east.internal.test.", "1.0.1.10.in-addr.arpa.", `\255.`} {
		for _, kind := range []uint16{dns.TypeA, dns.TypeSRV, dns.TypeANY, dns.TypePTR} {
			text, err := new(dns.Msg).SetQuestion(name, kind).SetEdns0(512, true).Pack()
			waittest.Must(f, err)
			f.Add(text, true)
			f.Add(text[:len(text)-5], false)
		}
	}
	f.Add([]byte("\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00"), true)
	f.Fuzz(func(t *testing.T, text []byte, friend bool) {
		peer, size := netip.MustParseAddr("10.0.0.1"), len(text)
		if !friend {
			peer = netip.MustParseAddr("8.8.8.8")
		}
		q, reply := s.check(text, peer)
		if q != nil {
			if !friend || reply != nil {
				t.Errorf("a client that is not permitted is answered: %t, twice: %x", !friend, reply)
			}
			for _, network := range []string{"tcp", "udp"} {
				reply, size = s.respond(q, peer, network), q.sizeFor(network)
			}
		}
		if n := testutil.ToFloat64(failures.WithLabelValues("dns")); n != 0 {
			t.Fatal("an internal error")
		}
		if reply == nil {
			return
		}
		m := new(dns.Msg)
		err := m.Unpack(reply)
		if m.Rcode == dns.RcodeRefused && m.IsEdns0() != nil {
			size += 6 // the extended error for a client that may not ask
		}
		if err != nil || len(reply) > size || !m.Response || m.Id != binary.BigEndian.Uint16(text) {
			t.Errorf("%d bytes of %d: %v: %s", len(reply), size, err, m)
		}
	})
}
