package dnsserver

import (
	"encoding/binary"
	"hash/maphash"
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync/atomic"

	"github.com/miekg/dns"

	"github.com/mesh-agent/mesh-agent/pkg/backends"
	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// What nearly everybody asks for are the addresses of a service. These answers are kept as they are
// sent, for as long as the service is the same object, and are put together without the library. Any
// other question, and any answer with more to say, goes the long way; both say the same.

// kept is one answer that is kept.
type kept struct {
	service *services.Global
	kind    uint16
	records []byte // each of the same size; the owner is the name of the question
	count   int
}

// keptAnswers has room for so many answers; a new one takes the place of an old one. It may be used by
// any number of goroutines.
type keptAnswers struct {
	seed maphash.Seed
	all  [4096]atomic.Pointer[kept]
}

func (k *keptAnswers) place(g *services.Global, kind uint16) *atomic.Pointer[kept] {
	return &k.all[maphash.Comparable(k.seed, struct {
		service *services.Global
		kind    uint16
	}{g, kind})%uint64(len(k.all))]
}

// of is the answer for a service, made if need be.
func (k *keptAnswers) of(r *resolver, g *services.Global, kind uint16) *kept {
	place := k.place(g, kind)
	if a := place.Load(); a != nil && a.service == g && a.kind == kind {
		return a
	}
	s := serviceName{answer: &answer{resolver: r}}
	a := &kept{service: g, kind: kind}
	for _, b := range s.part(backends.Choose(g, backends.Port{}, r.asker).Now()) {
		if b.IP.Is4() == (kind == dns.TypeA) {
			a.records = appendRecord(a.records, kind, r.ttl, b.IP)
			a.count++
		}
	}
	place.Store(a)
	return a
}

// appendRecord adds an address of the name that is asked for, which is at offset 12 of the message.
func appendRecord(to []byte, kind uint16, ttl uint32, ip netip.Addr) []byte {
	to = append(to, 0xc0, 12)
	to = binary.BigEndian.AppendUint16(to, kind)
	to = binary.BigEndian.AppendUint16(to, dns.ClassINET)
	to = binary.BigEndian.AppendUint32(to, ttl)
	to = binary.BigEndian.AppendUint16(to, uint16(ip.BitLen()/8)) //nolint:gosec // 4 or 16
	return append(to, ip.AsSlice()...)
}

// Bits of the header of an answer.
const (
	isAnswer        = 1 << 15
	isAuthoritative = 1 << 10
	isRecursive     = 1 << 8 // recursion is desired, of the question
	checksDisabled  = 1 << 4
)

// quick is the whole answer to a message, for up to size bytes; nil when it takes the long way.
func (s *Server) quick(q *dns.Msg, peer netip.Addr, size int) []byte {
	question := &q.Question[0]
	if question.Qtype != dns.TypeA && question.Qtype != dns.TypeAAAA || question.Qclass != dns.ClassINET || !s.known.isReady() || !s.admits(peer) {
		return nil
	}
	opt := q.IsEdns0()
	if opt != nil && opt.Version() != 0 {
		return nil
	}
	name := dns.CanonicalName(question.Name)
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
	k := s.kept.of(r, g, question.Qtype)
	if k.count == 0 {
		return nil
	}
	return k.message(q, opt != nil, size)
}

// message puts an answer together, in turns; nil when it is too long.
func (k *kept) message(q *dns.Msg, extended bool, size int) []byte {
	question := &q.Question[0]
	m := make([]byte, 12, 12+len(question.Name)+5+len(k.records)+11)
	flags := uint16(isAnswer | isAuthoritative)
	if q.RecursionDesired {
		flags |= isRecursive
	}
	if q.CheckingDisabled {
		flags |= checksDisabled
	}
	binary.BigEndian.PutUint16(m[0:], q.Id)
	binary.BigEndian.PutUint16(m[2:], flags)
	binary.BigEndian.PutUint16(m[4:], 1)
	binary.BigEndian.PutUint16(m[6:], uint16(k.count)) //nolint:gosec // a bounded part of the backends
	m = m[:cap(m)]
	n, err := dns.PackDomainName(question.Name, m, 12, nil, false)
	if err != nil {
		return nil
	}
	m = binary.BigEndian.AppendUint16(m[:n], question.Qtype)
	m = binary.BigEndian.AppendUint16(m, question.Qclass)
	first := len(k.records) / k.count * rand.IntN(k.count)
	m = append(append(m, k.records[first:]...), k.records[:first]...)
	if extended {
		binary.BigEndian.PutUint16(m[10:], 1)
		m = append(m, 0, 0, byte(dns.TypeOPT), udpSize>>8, udpSize&0xff, 0, 0, 0, 0, 0, 0)
	}
	if len(m) > size {
		return nil
	}
	return m
}
