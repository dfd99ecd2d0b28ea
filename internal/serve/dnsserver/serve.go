package dnsserver

import (
	"errors"
	"net/netip"
	"time"

	"github.com/miekg/dns"

	"github.com/mesh-agent/mesh-agent/internal/base/boundary"
)

// check reads a message: it is a question that may be answered, or there is a reply that needs no answer; for
// neither there is silence. It costs little, whatever the message is: who sends it may be anybody.
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

// respond answers a question. When the work for it fails, the client gets SERVFAIL.
func (s *Server) respond(q *query, peer netip.Addr, network string) (reply []byte) {
	began, rcode := time.Now(), dns.RcodeSuccess
	err := s.boundary.Run(func() (err error) {
		reply, rcode, err = s.compose(q, network)
		return err
	}, "client", peer)
	if err != nil {
		if !errors.Is(err, boundary.ErrInternal) { // which was reported
			s.boundary.Report(err, "client", peer)
		}
		reply, rcode = q.failure(dns.RcodeServerFailure), dns.RcodeServerFailure
	}
	s.metrics.answered(network, q.kind, rcode, time.Since(began))
	return reply
}

// compose returns an answer as it is sent. The error is a bug: there is no answer that cannot be sent.
func (s *Server) compose(q *query, network string) (reply []byte, rcode int, err error) {
	size := q.sizeFor(network)
	if m := s.quick(q, size); m != nil {
		return m, dns.RcodeSuccess, nil
	}
	m := s.answer(q)
	whole := len(m.Answer)
	m.Truncate(size)
	m.Truncated = len(m.Answer) < whole // what is missing of the rest is not asked for again (RFC 2181, section 9)
	reply, err = m.Pack()
	return reply, m.Rcode, err
}

// answer answers a question with all that there is to say.
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
	ready := s.known.isReady() // before the question is looked at: what is there then was there already
	a := s.resolve(z, q)
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

// anyKinds are those of which the first that a name has answers a question for all of them (RFC 8482, section 4.1).
var anyKinds = [...]uint16{dns.TypeSOA, dns.TypeA, dns.TypeAAAA, dns.TypeSRV, dns.TypePTR, dns.TypeTXT}

// resolve finds what is asked for, at one moment.
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

// explain adds an extended error for those who take one; an empty text is none.
func explain(m *dns.Msg, code uint16, text string) {
	if opt := m.IsEdns0(); opt != nil && text != "" {
		opt.Option = append(opt.Option, &dns.EDNS0_EDE{InfoCode: code, ExtraText: text})
	}
}
