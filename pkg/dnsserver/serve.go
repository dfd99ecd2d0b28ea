package dnsserver

import (
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/miekg/dns"
)

// accept judges a message by its header, before the rest is read. Beyond the bound it is not
// answered, as if it had been lost: who asks tries again.
func (s *Server) accept(h dns.Header) dns.MsgAcceptAction {
	if s.atOnce.Load() >= s.mostAtOnce {
		s.metrics.refused.WithLabelValues("queries").Inc()
		return dns.MsgIgnore
	}
	return dns.DefaultMsgAcceptFunc(h)
}

// serve answers one message. The library recovers from nothing: what fails here would end the process.
func (s *Server) serve(w dns.ResponseWriter, q *dns.Msg, network string) {
	s.atOnce.Add(1)
	defer s.atOnce.Add(-1)
	_ = s.boundary.Run(func() error { s.serveOne(w, q, network); return nil }, "client", w.RemoteAddr())
}

func (s *Server) serveOne(w dns.ResponseWriter, q *dns.Msg, network string) {
	began := time.Now()
	peer, size, rcode := peerOf(w.RemoteAddr()), sizeFor(q, network), dns.RcodeSuccess
	// Who does not take the answer asks again.
	if m := s.quick(q, peer, size); m != nil {
		_, _ = w.Write(m)
	} else {
		m := s.answer(q, peer)
		whole := len(m.Answer)
		m.Truncate(size)
		m.Truncated = len(m.Answer) < whole // what is missing of the rest is not asked for again (RFC 2181, section 9)
		rcode = m.Rcode
		_ = w.WriteMsg(m)
	}
	s.metrics.answered(network, q.Question[0].Qtype, rcode, time.Since(began))
}

// sizeFor is how long an answer may be.
func sizeFor(q *dns.Msg, network string) int {
	if network != "udp" {
		return dns.MaxMsgSize
	}
	opt := q.IsEdns0()
	if opt == nil {
		return dns.MinMsgSize
	}
	return min(max(dns.MinMsgSize, int(opt.UDPSize())), udpSize)
}

func peerOf(a net.Addr) netip.Addr {
	switch a := a.(type) {
	case *net.UDPAddr:
		return a.AddrPort().Addr().Unmap()
	case *net.TCPAddr:
		return a.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// answer answers a message with one question, which the library has seen to.
func (s *Server) answer(q *dns.Msg, peer netip.Addr) *dns.Msg {
	m := new(dns.Msg)
	m.SetReply(q)
	m.Compress = true
	opt := q.IsEdns0()
	if opt != nil {
		m.SetEdns0(udpSize, false)
		if opt.Version() != 0 {
			m.Rcode = dns.RcodeBadVers
			return m
		}
	}
	question := q.Question[0]
	var z *zone
	if s.admits(peer) && question.Qclass == dns.ClassINET {
		z = s.names.zoneOf(dns.CanonicalName(question.Name))
	}
	if z == nil || question.Qtype == dns.TypeAXFR || question.Qtype == dns.TypeIXFR {
		m.Rcode = dns.RcodeRefused
		return m
	}
	ready := s.known.isReady() // before the question is looked at: what is there then was there already
	a := s.names.resolve(s.names.view.DB.ReadTxn(), z, question.Name, question.Qtype)
	if !ready && !a.fixed && len(a.records) == 0 { // somebody may have what was asked for
		m.Rcode = dns.RcodeServerFailure
		explain(m, dns.ExtendedErrorCodeNotReady, notReady)
		return m
	}
	m.Authoritative = true
	m.Answer, m.Extra = a.records, append(a.extra, m.Extra...)
	switch stale := s.known.staleFor(a); {
	case !a.exists:
		m.Rcode = dns.RcodeNameError
		explain(m, dns.ExtendedErrorCodeStaleNXDOMAINAnswer, stale)
	case !ready && !a.fixed:
		explain(m, dns.ExtendedErrorCodeStaleAnswer, notReady)
	default:
		explain(m, dns.ExtendedErrorCodeStaleAnswer, stale)
	}
	if len(a.records) == 0 {
		m.Ns = append(m.Ns, a.soa(min(a.ttl, mostNegative)))
	}
	return m
}

const notReady = "the agent still reads the clusters"

func (s *Server) admits(peer netip.Addr) bool {
	return slices.ContainsFunc(s.clients, func(p netip.Prefix) bool { return p.Contains(peer) })
}

// explain adds an extended error for those who take one; an empty text is none.
func explain(m *dns.Msg, code uint16, text string) {
	if opt := m.IsEdns0(); opt != nil && text != "" {
		opt.Option = append(opt.Option, &dns.EDNS0_EDE{InfoCode: code, ExtraText: text})
	}
}
