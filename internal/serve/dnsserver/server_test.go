package dnsserver_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/mesh-agent/mesh-agent/internal/serve/dnsserver"
	"github.com/mesh-agent/mesh-agent/internal/serve/transport"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest/viewtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// run runs a server until the end of the test.
func run(t testing.TB, s *dnsserver.Server) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
	})
}

// many is a world with a service of so many backends.
func many(t testing.TB, n int) *viewtest.World {
	t.Helper()
	w := viewtest.New(t)
	line := "service own shop/cart"
	for i := range n {
		line += fmt.Sprintf(" 10.0.%d.%d", i/200, i%200+1)
	}
	w.Play(t, line)
	return w
}

func ask(t testing.TB, s *dnsserver.Server, network, name string, kind uint16, size uint16) *dns.Msg {
	t.Helper()
	q := new(dns.Msg)
	q.SetQuestion(name, kind)
	if size > 0 {
		q.SetEdns0(size, false)
	}
	m, _, err := (&dns.Client{Net: network, UDPSize: 4096}).Exchange(q, s.Address())
	waittest.Must(t, err)
	return m
}

const cart = "cart.shop.svc.clusterset.local."

// TestAnswersAreBounded: a large service answers with a part of its backends, which is the same for each type of
// question. An answer that does not fit into a packet is truncated, and the client asks again over TCP.
func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	w := many(t, 300)
	s := serve(t, dnsserver.Params{View: w.View, Answers: 100})
	all := ask(t, s, "tcp", cart, dns.TypeA, 0)
	if len(all.Answer) != 100 || all.Truncated {
		t.Errorf("%d answers over TCP, cut: %t", len(all.Answer), all.Truncated)
	}
	known := make(map[string]bool)
	for _, rr := range all.Answer {
		known[rr.(*dns.A).A.String()] = true
	}
	for _, size := range []uint16{0, 512, 1232, 65535} {
		m := ask(t, s, "udp", cart, dns.TypeA, size)
		m.Compress = true
		wire, err := m.Pack()
		if err != nil || !m.Truncated || len(m.Answer) == 0 || len(wire) > max(512, min(1232, int(size))) {
			t.Errorf("UDP of %d: %d answers in %d bytes, cut: %t, %v", size, len(m.Answer), len(wire), m.Truncated, err)
		}
		for _, rr := range m.Answer {
			if !known[rr.(*dns.A).A.String()] {
				t.Errorf("UDP of %d: %s is none of the part that TCP has", size, rr)
			}
		}
	}
	hosts := ask(t, s, "tcp", cart, dns.TypeSRV, 0)
	for _, rr := range hosts.Extra {
		if a, is := rr.(*dns.A); is && !known[a.A.String()] {
			t.Errorf("%s is a target, and no address", a)
		}
	}
	if len(hosts.Answer) != 100 {
		t.Errorf("%d targets", len(hosts.Answer))
	}
}

// TestAnswersTakeTurns: each backend is the first one of some answers.
func TestAnswersTakeTurns(t *testing.T) {
	t.Parallel()
	w := many(t, 3)
	s := serve(t, dnsserver.Params{View: w.View})
	first := make(map[string]int)
	waittest.Until(t, "each of three to be the first", func() bool {
		m := ask(t, s, "udp", cart, dns.TypeA, 0)
		if len(m.Answer) != 3 {
			t.Fatalf("%v", m.Answer)
		}
		first[m.Answer[0].(*dns.A).A.String()]++
		return len(first) == 3
	})
}

// TestOthersAreRefused: a client outside of the clients' networks gets no information.
func TestOthersAreRefused(t *testing.T) {
	t.Parallel()
	w := many(t, 1)
	s := serve(t, dnsserver.Params{View: w.View, Clients: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}})
	if m := ask(t, s, "udp", cart, dns.TypeA, 1232); m.Rcode != dns.RcodeRefused || len(m.Answer) > 0 || m.Authoritative {
		t.Errorf("%s", m)
	}
}

// TestOddMessages: each is answered with a response code, or not at all; the server continues to answer.
func TestOddMessages(t *testing.T) {
	t.Parallel()
	w := many(t, 1)
	s := serve(t, dnsserver.Params{View: w.View})
	for name, test := range map[string]struct {
		change func(*dns.Msg)
		want   int
	}{
		"another class":              {func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassCHAOS }, dns.RcodeRefused},
		"two questions":              {func(m *dns.Msg) { m.Question = append(m.Question, m.Question[0]) }, dns.RcodeFormatError},
		"no question":                {func(m *dns.Msg) { m.Question = nil }, dns.RcodeFormatError},
		"an update":                  {func(m *dns.Msg) { m.Opcode = dns.OpcodeUpdate }, dns.RcodeNotImplemented},
		"an unknown version of EDNS": {func(m *dns.Msg) { m.SetEdns0(1232, false); m.IsEdns0().SetVersion(3) }, dns.RcodeBadVers},
		"a name with a dot in it":    {func(m *dns.Msg) { m.Question[0].Name = `cart\.shop.shop.svc.clusterset.local.` }, dns.RcodeNameError},
		"a name of many labels":      {func(m *dns.Msg) { m.Question[0].Name = strings.Repeat("a.", 100) + "svc.clusterset.local." }, dns.RcodeNameError},
		"the root":                   {func(m *dns.Msg) { m.Question[0].Name = "." }, dns.RcodeRefused},
	} {
		q := new(dns.Msg)
		q.SetQuestion(cart, dns.TypeA)
		test.change(q)
		m, _, err := new(dns.Client).Exchange(q, s.Address())
		if err != nil || m.Rcode != test.want {
			t.Errorf("%s: %v %v", name, m, err)
		}
	}
	conn, err := net.Dial("udp", s.Address())
	waittest.Must(t, err)
	defer conn.Close()
	for _, bytes := range []string{"", "x", strings.Repeat("\xff", 600), "\x00\x01\x80\x00\x00\x01\x00\x00\x00\x00\x00\x00"} {
		if _, err := conn.Write([]byte(bytes)); err != nil {
			t.Fatal(err)
		}
	}
	if m := ask(t, s, "udp", cart, dns.TypeA, 0); len(m.Answer) != 1 {
		t.Errorf("afterwards: %s", m)
	}
}

// TestConnectionsAreBounded: connections above the limit are closed and counted; others are served.
func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	w := many(t, 1)
	m := dnsserver.NewMetrics()
	s := serve(t, dnsserver.Params{View: w.View, TCP: transport.Limit{All: 2, Peer: 2}, Metrics: m})
	var open []net.Conn
	for range 2 {
		conn, err := net.Dial("tcp", s.Address())
		waittest.Must(t, err)
		open = append(open, conn)
	}
	third, err := net.Dial("tcp", s.Address())
	waittest.Must(t, err)
	defer third.Close()
	if _, err := third.Read(make([]byte, 1)); err == nil {
		t.Error("a third connection is not closed")
	}
	if n := counted(t, m, "mesh_agent_dns_refused_total"); n != 1 {
		t.Errorf("%v connections refused", n)
	}
	for _, conn := range open {
		_ = conn.Close()
	}
	waittest.Until(t, "a connection to be served again", func() bool {
		q := new(dns.Msg)
		q.SetQuestion(cart, dns.TypeA)
		m, _, err := (&dns.Client{Net: "tcp"}).Exchange(q, s.Address())
		return err == nil && len(m.Answer) == 1
	})
}

func counted(t testing.TB, c prometheus.Collector, name string) (sum float64) {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(c)
	families, err := reg.Gather()
	waittest.Must(t, err)
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	w := many(t, 1)
	m := dnsserver.NewMetrics()
	s := serve(t, dnsserver.Params{View: w.View, Metrics: m})
	ask(t, s, "udp", cart, dns.TypeA, 0)
	ask(t, s, "udp", cart, dns.TypeMX, 0)
	ask(t, s, "tcp", "nope."+cart, dns.TypeSRV, 0)
	for reason, message := range map[string]string{"ignored": "short", "malformed": "\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00", "unsupported": "\x00\x01\x28\x00\x00\x01\x00\x00\x00\x00\x00\x00"} {
		conn, err := net.Dial("udp", s.Address())
		waittest.Must(t, err)
		defer conn.Close()
		if _, err := conn.Write([]byte(message)); err != nil {
			t.Fatal(reason, err)
		}
	}
	want := `
# HELP mesh_agent_dns_queries_total Answered queries, by transport, record type and response code.
# TYPE mesh_agent_dns_queries_total counter
mesh_agent_dns_queries_total{rcode="NOERROR",transport="udp",type="A"} 1
mesh_agent_dns_queries_total{rcode="NOERROR",transport="udp",type="other"} 1
mesh_agent_dns_queries_total{rcode="NXDOMAIN",transport="tcp",type="SRV"} 1
# HELP mesh_agent_dns_refused_total Queries and connections that exceeded a limit.
# TYPE mesh_agent_dns_refused_total counter
mesh_agent_dns_refused_total{limit="connections"} 0
mesh_agent_dns_refused_total{limit="connections_of_client"} 0
mesh_agent_dns_refused_total{limit="queries"} 0
mesh_agent_dns_refused_total{limit="queries_of_client"} 0
# HELP mesh_agent_dns_rejected_messages_total Messages that are no questions to be answered, by reason.
# TYPE mesh_agent_dns_rejected_messages_total counter
mesh_agent_dns_rejected_messages_total{reason="client"} 0
mesh_agent_dns_rejected_messages_total{reason="ignored"} 1
mesh_agent_dns_rejected_messages_total{reason="malformed"} 1
mesh_agent_dns_rejected_messages_total{reason="unsupported"} 1
`
	waittest.Until(t, "three answers and three rejections to be counted", func() bool {
		answered, refused := m.Totals()
		return answered == 3 && refused == 0 && counted(t, m, "mesh_agent_dns_rejected_messages_total") == 3
	})
	if err := testutil.CollectAndCompare(m, strings.NewReader(want), "mesh_agent_dns_queries_total", "mesh_agent_dns_refused_total", "mesh_agent_dns_rejected_messages_total"); err != nil {
		t.Error(err)
	}
}

func TestBadParameters(t *testing.T) {
	t.Parallel()
	w := viewtest.New(t)
	for want, p := range map[string]dnsserver.Params{
		"View is missing":                 {},
		`"a..b" is no domain name`:        {View: w.View, Zones: []string{"a..b"}},
		`"." is no domain name`:           {View: w.View, Zones: []string{"."}},
		"X.test is given twice":           {View: w.View, Zones: []string{"x.test", "X.test"}},
		"clusterset.local is given twice": {View: w.View, MeshZone: "clusterset.local"},
	} {
		if _, err := dnsserver.New(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	s := serve(t, dnsserver.Params{View: w.View})
	other, err := dnsserver.New(dnsserver.Params{View: w.View})
	waittest.Must(t, err)
	other.Close()
	if err := other.Listen(s.Address()); err == nil || !strings.Contains(err.Error(), "cannot listen on "+s.Address()) {
		t.Errorf("an address in use: %v", err)
	}
}

// TestGoResolver: the resolver of Go's library, which asks for both families at once.
func TestGoResolver(t *testing.T) {
	t.Parallel()
	w := viewtest.New(t)
	w.Play(t, "service own shop/cart 10.0.0.1 fd00::1,host=cart-6")
	s := serve(t, dnsserver.Params{View: w.View})
	r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, s.Address())
	}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	addresses, err := r.LookupHost(ctx, cart)
	slices.Sort(addresses)
	if err != nil || !slices.Equal(addresses, []string{"10.0.0.1", "fd00::1"}) {
		t.Errorf("%v %v", addresses, err)
	}
	_, targets, err := r.LookupSRV(ctx, "http", "tcp", cart)
	if err != nil || len(targets) != 2 || targets[0].Port != 8080 {
		t.Errorf("%v %v", targets, err)
	}
	if _, err := r.LookupHost(ctx, "nope.shop.svc.clusterset.local."); err == nil || !strings.Contains(err.Error(), "no such host") {
		t.Errorf("an unknown name: %v", err)
	}
}
