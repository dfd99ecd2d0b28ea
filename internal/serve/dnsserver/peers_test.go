package dnsserver

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/mesh-agent/mesh-agent/pkg/backends"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest/viewtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestWhoMayAsk: by default clients whose addresses are not on the internet may ask, and the own cluster, in all of its
// networks. Claims of remote clusters admit no client.
func TestWhoMayAsk(t *testing.T) {
	t.Parallel()
	w := viewtest.New(t)
	w.Play(t, "node own n1 240.1.2.3 2600:1f13:fc2:a700::5\ncluster east synced\nnode east n1 198.18.2.3\naddress east 203.0.113.5")
	byDefault, err := New(Params{View: w.View, Cluster: viewtest.Own})
	waittest.Must(t, err)
	given, err := New(Params{View: w.View, Cluster: viewtest.Own, Clients: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	waittest.Must(t, err)
	for text, want := range map[string][2]bool{
		"127.0.0.1": {true, false}, "10.1.2.3": {true, true}, "fd00:1::5": {true, false}, "100.64.2.3": {true, false},
		"240.1.2.3": {true, false}, "2600:1f13:fc2:a700::5": {true, false}, // the own node
		"240.1.2.4": {}, "198.18.2.3": {}, "203.0.113.5": {}, "8.8.8.8": {},
	} {
		ip := netip.MustParseAddr(text)
		if got := [2]bool{byDefault.admits(ip), given.admits(ip)}; got != want {
			t.Errorf("%s: by default and as given %v, want %v", text, got, want)
		}
	}
}

// TestWhoIsRefusedLearnsWhy: the answer has the reason, if the client accepts extended errors. The log has it too, once
// in a while.
func TestWhoIsRefusedLearnsWhy(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s, err := New(Params{View: viewtest.New(t).View, Log: slog.New(slog.NewTextHandler(&log, nil))})
	waittest.Must(t, err)
	for _, extended := range []bool{false, true, true} {
		m := new(dns.Msg).SetQuestion("cart.shop.svc.clusterset.local.", dns.TypeA)
		if extended {
			m.SetEdns0(1232, true)
		}
		sent, err := m.Pack()
		waittest.Must(t, err)
		_, received := s.check(sent, netip.MustParseAddr("203.0.113.5"))
		reply := new(dns.Msg)
		waittest.Must(t, reply.Unpack(received))
		var why []dns.EDNS0
		if opt := reply.IsEdns0(); opt != nil {
			why = opt.Option
		}
		switch {
		case reply.Rcode != dns.RcodeRefused, len(received) > len(sent)+6, extended != (len(why) == 1):
			t.Errorf("extended %t: %s", extended, reply)
		case extended && why[0].(*dns.EDNS0_EDE).InfoCode != dns.ExtendedErrorCodeProhibited:
			t.Errorf("the reason is %v", why[0])
		}
	}
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "--dns-clients") || !strings.Contains(text, "client=203.0.113.5") {
		t.Errorf("the log: %s", text)
	}
}

// TestTheNameServerHasAddresses: those on which it listens or, if it listens on every address, those of its node.
func TestTheNameServerHasAddresses(t *testing.T) {
	t.Parallel()
	w := viewtest.New(t)
	w.Play(t, "node own n1 192.168.0.1 fd00::1\nnode east n1 192.168.0.2")
	ask := func(s *Server, name string, kind uint16) string {
		var all []string
		m := s.answer(queryOf(t, new(dns.Msg).SetQuestion(name, kind)))
		for _, rr := range append(m.Answer, m.Extra...) {
			all = append(all, strings.TrimPrefix(rr.String(), rr.Header().String()))
		}
		return strings.Join(all, " ")
	}
	for listen, want := range map[string][3]string{
		"":            {"ns.dns.clusterset.local.", "", ""}, // not yet
		"127.0.0.1:0": {"ns.dns.clusterset.local. 127.0.0.1", "127.0.0.1", ""},
		"[::1]:0":     {"ns.dns.clusterset.local. ::1", "", "::1"},
		"0.0.0.0:0":   {"ns.dns.clusterset.local. 192.168.0.1 fd00::1", "192.168.0.1", "fd00::1"},
	} {
		node := ""
		if strings.HasPrefix(listen, "0.0.0.0") {
			node = "n1"
		}
		s, err := New(Params{View: w.View, Cluster: viewtest.Own, Asker: backends.Asker{Node: node}, MeshZone: "mesh.test"})
		waittest.Must(t, err)
		if listen != "" {
			waittest.Must(t, s.Listen(listen))
			defer s.Close()
		}
		got := [3]string{ask(s, "clusterset.local.", dns.TypeNS), ask(s, "ns.dns.clusterset.local.", dns.TypeA), ask(s, "ns.dns.clusterset.local.", dns.TypeAAAA)}
		if got != want {
			t.Errorf("listening on %q: %q, want %q", listen, got, want)
		}
		if all := ask(s, "mesh.test.", dns.TypeNS); !strings.HasPrefix(all, "ns.dns.clusterset.local.") {
			t.Errorf("the name server of another zone: %s", all)
		}
	}
}
