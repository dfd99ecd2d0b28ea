package dnsserver

import (
	"errors"
	"net/netip"
	"time"

	"github.com/miekg/dns"

	"github.com/mesh-agent/mesh-agent/internal/base/boundary"
)

// check parses a message. It returns a question that may be answered, or the reply to any other message; neither if
// the message is ignored. It must be cheap for every message, as anyone can send one.
func (s *Server) check(message []byte, peer netip.Addr) (q *query, reply []byte) {
	_ = s.boundary.Run(func() error { q, reply = s.judge(message, peer); return nil }, "client", peer)
	return q, reply
}

func (s *Server) judge(message []byte, peer netip.Addr) (*query, []byte) {
	q, rcode := parse(message)
	wellFormed := rcode == dns.RcodeSuccess || rcode == dns.RcodeBadVers
	switch {
	case rcode == ignored:
		s.metrics.ignored.Inc()
		return nil, nil
	case !s.admits(peer):
		s.notAdmitted(peer)
		if !wellFormed {
			return nil, nil
		}
		return nil, q.prohibited()
	case rcode == dns.RcodeSuccess:
		return &q, nil
	case rcode == dns.RcodeFormatError:
		s.metrics.malformed.Inc()
	default:
		s.metrics.unsupported.Inc()
	}
	return nil, q.failure(rcode)
}

// Reply answers one message of a client as over a socket of this network, "udp" or "tcp"; nil if the message is
// ignored. It needs no socket and has no limit of questions.
func (s *Server) Reply(message []byte, peer netip.Addr, network string) []byte {
	q, reply := s.check(message, peer)
	if q == nil {
		return reply
	}
	return s.respond(q, peer, network)
}

// respond answers a question. If that fails, the client gets SERVFAIL.
func (s *Server) respond(q *query, peer netip.Addr, network string) (reply []byte) {
	began, rcode := time.Now(), dns.RcodeSuccess
	err := s.boundary.Run(func() (err error) {
		reply, rcode, err = s.compose(q, network)
		return err
	}, "client", peer)
	if err != nil {
		if !errors.Is(err, boundary.ErrInternal) { // which Run has already reported
			s.boundary.Report(err, "client", peer)
		}
		reply, rcode = q.failure(dns.RcodeServerFailure), dns.RcodeServerFailure
	}
	s.metrics.answered(network, q.kind, rcode, time.Since(began))
	return reply
}

// compose returns an encoded reply. An error is a bug: every reply can be encoded.
func (s *Server) compose(q *query, network string) (reply []byte, rcode int, err error) {
	size := q.sizeFor(network)
	if m := s.quick(q, size); m != nil {
		return m, dns.RcodeSuccess, nil
	}
	m := s.answer(q)
	whole := len(m.Answer)
	m.Truncate(size)
	m.Truncated = len(m.Answer) < whole // only for answers: a client does not ask again for other records that were cut (RFC 2181, section 9)
	reply, err = m.Pack()
	return reply, m.Rcode, err
}

// answer returns the full reply to a question.
func (s *Server) answer(q *query) *dns.Msg {
	m := &dns.Msg{
		MsgHdr: dns.MsgHdr{
			Id: q.id, Response: true, RecursionDesired: q.flags&isRecursive != 0, CheckingDisabled: q.flags&checksDisabled != 0,
		},
		Compress: true, Question: []dns.Question{{Name: q.name, Qtype: q.kind, Qclass: q.class}},
	}
	if q.extended {
		m.SetEdns0(udpSize, q.dnssec)
	}
	var z *zone
	if q.class == dns.ClassINET {
		z = s.names.zoneOf(dns.CanonicalName(q.name))
	}
	if z == nil || q.kind == dns.TypeAXFR || q.kind == dns.TypeIXFR {
		m.Rcode = dns.RcodeRefused
		return m
	}
	ready := s.known.isReady() // read before the names are resolved, so that these are at least as new
	a := s.resolve(z, q)
	if !ready && !a.fixed && len(a.records) == 0 { // a cluster that is not read yet may have the records
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

// anyKinds are the types for a question of type ANY. The first of them that a name has is the answer (RFC 8482,
// section 4.1).
var anyKinds = [...]uint16{dns.TypeSOA, dns.TypeA, dns.TypeAAAA, dns.TypeSRV, dns.TypePTR, dns.TypeTXT}

// resolve answers a question from one snapshot.
func (s *Server) resolve(z *zone, q *query) (a *answer) {
	txn := s.names.view.DB.ReadTxn()
	if q.kind != dns.TypeANY {
		return s.names.resolve(txn, z, q.name, q.kind)
	}
	for _, kind := range anyKinds {
		if a = s.names.resolve(txn, z, q.name, kind); len(a.records) > 0 || !a.exists {
			break
		}
	}
	return a
}

const notReady = "the agent still reads the clusters"

// explain adds an extended error for clients that support them; with an empty text it adds none.
func explain(m *dns.Msg, code uint16, text string) {
	if opt := m.IsEdns0(); opt != nil && text != "" {
		opt.Option = append(opt.Option, &dns.EDNS0_EDE{InfoCode: code, ExtraText: text})
	}
}
