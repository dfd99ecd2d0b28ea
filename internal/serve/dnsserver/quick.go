package dnsserver

import (
	"math/rand/v2"
	"strings"

	"github.com/miekg/dns"

	"github.com/mesh-agent/mesh-agent/pkg/backends"
)

// Most questions are for the addresses of a service. Their replies are made from the records of a [part], without the
// DNS library. All other questions, and all replies with more than these records, are handled by [Server.answer]. For
// the same question, both give the same reply.

// quick returns the reply to a question, of at most size bytes; nil if [Server.answer] has to handle it.
func (s *Server) quick(q *query, size int) []byte {
	if q.kind != dns.TypeA && q.kind != dns.TypeAAAA || q.class != dns.ClassINET || !s.known.isReady() {
		return nil
	}
	name := dns.CanonicalName(q.name)
	z := s.names.zoneOf(name)
	if z == nil || !z.services {
		return nil
	}
	service, rest, _ := strings.Cut(name, ".")
	namespace, rest, _ := strings.Cut(rest, ".")
	rest, isService := strings.CutPrefix(rest, "svc.")
	if !isService || rest != z.name || strings.Contains(name, `\`) {
		return nil
	}
	r := &s.names
	g, addresses := r.find(r.view.DB.ReadTxn(), namespace, service)
	if g == nil || len(addresses) > 0 || s.known.staleFor(&answer{service: g}) != "" {
		return nil
	}
	return r.part(g, "", backends.Port{}, "", "").of(q.kind).message(q, size)
}

// message returns the reply, in which a random record is the first; nil if it is too long, or there are no records.
func (r *records) message(q *query, size int) []byte {
	if r.count == 0 {
		return nil
	}
	m := q.reply(isAuthoritative, r.count, len(r.bytes))
	first := len(r.bytes) / r.count * rand.IntN(r.count)
	m = append(append(m, r.bytes[first:]...), r.bytes[:first]...)
	if m = q.end(m, dns.RcodeSuccess); len(m) > size {
		return nil
	}
	return m
}
