package dnsserver

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"math"
	"net/netip"
	"slices"

	"github.com/miekg/dns"

	"github.com/mesh-agent/mesh-agent/pkg/backends"
	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// part is a selection of the backends that connections to a port of a service go to now ([backends.Choose]): a bounded
// number of each family. A number for each address, its score, decides which ones. So the parts for different
// questions agree with each other, the parts of different agents differ, and a change of one backend changes at most
// one backend of the part.
type part struct {
	exists  bool
	a, aaaa records
	targets []target // for SRV records: both families together have as many as one
}

// records are encoded address records, each of the same size. Their owner is the name of the question.
type records struct {
	bytes []byte
	count int
}

// target has the data for the SRV records of a backend.
type target struct {
	name  string // relative to the name of the service
	ip    netip.Addr
	ports []uint16
}

// mostRecords bounds the SRV records of an answer. Each record has one port.
const mostRecords = 1024

// size is an estimate of the memory of a part, in bytes.
func (p *part) size() int64 {
	n := 128 + len(p.a.bytes) + len(p.aaaa.bytes)
	for i := range p.targets {
		n += 72 + len(p.targets[i].name) + 2*len(p.targets[i].ports)
	}
	return int64(n)
}

func (p *part) of(kind uint16) *records {
	if kind == dns.TypeA {
		return &p.a
	}
	return &p.aaaa
}

// part returns the part for a port of a service. With a cluster, it has only the backends of that cluster, from all
// groups.
func (r *resolver) part(g *services.Global, cluster string, port backends.Port, name, protocol string) *part {
	key := keptKey{keptPart, g.Namespace, g.Name, cluster, name, protocol}
	return remember(r.kept, key, g, func() (*part, int64) {
		p := r.makePart(g, cluster, port)
		return p, p.size()
	})
}

func (r *resolver) makePart(g *services.Global, cluster string, port backends.Port) *part {
	staying, leaving := newPicks(r.most), newPicks(r.most)
	stays := false
	for c := range backends.Candidates(g, port, r.asker) {
		terminating := c.Terminating()
		stays = stays || !terminating
		if cluster != "" {
			if c.Part.Cluster != cluster {
				continue
			}
			c.Rank = 0
		}
		if !terminating {
			staying.add(r.scoreOf(c.IP), &c)
		} else if !stays {
			leaving.add(r.scoreOf(c.IP), &c)
		}
	}
	if !stays { // all backends terminate
		staying = leaving
	}
	return staying.part(r.ttl, cluster == "")
}

// scoreOf returns the score of an address. The addresses with the least scores are in the answers.
func (r *resolver) scoreOf(ip netip.Addr) uint64 {
	bytes := ip.As16()
	return maphash.Bytes(r.seed, bytes[:])
}

// picks collects the candidates of the best group that have the least scores, for each family.
type picks struct {
	most   int
	rank   int
	v4, v6 []pick // sorted by score
}

type pick struct {
	score uint64
	backends.Candidate
}

func comparePicks(a, b *pick) int {
	return cmp.Or(cmp.Compare(a.score, b.score), a.IP.Compare(b.IP))
}

func newPicks(most int) *picks { return &picks{most: most, rank: math.MaxInt} }

// add adds a candidate. Of several with the same address, the first one stays.
func (p *picks) add(score uint64, c *backends.Candidate) {
	if c.Rank > p.rank {
		return
	}
	if c.Rank < p.rank {
		p.rank, p.v4, p.v6 = c.Rank, p.v4[:0], p.v6[:0]
	}
	of := &p.v6
	if c.IP.Is4() {
		of = &p.v4
	}
	if n := len(*of); n == p.most && score > (*of)[n-1].score {
		return
	}
	one := pick{score, *c}
	at, found := slices.BinarySearchFunc(*of, &one, func(a pick, b *pick) int { return comparePicks(&a, b) })
	if found || at == p.most {
		return
	}
	if len(*of) == p.most {
		*of = (*of)[:p.most-1]
	}
	*of = slices.Insert(*of, at, one)
}

// part returns the data for answers. With withCluster, the names of targets contain the cluster.
func (p *picks) part(ttl uint32, withCluster bool) *part {
	result := &part{exists: len(p.v4)+len(p.v6) > 0, a: recordsOf(p.v4, dns.TypeA, ttl), aaaa: recordsOf(p.v6, dns.TypeAAAA, ttl)}
	all := slices.Concat(p.v4, p.v6)
	slices.SortFunc(all, func(a, b pick) int { return comparePicks(&a, &b) })
	all = all[:min(len(all), p.most)]
	for i := range all {
		b := &all[i]
		name := hostOf(b.Hostname, b.IP)
		if withCluster {
			name += "." + b.Part.Cluster
		}
		if _, valid := dns.IsDomainName(name); !valid {
			continue
		}
		t := target{name: name, ip: b.IP}
		for _, port := range b.Ports { // ports are sorted by number; several protocols may share a number, and get one record
			if n := len(t.ports); n < mostRecords/len(all) && (n == 0 || t.ports[n-1] != port.Port) {
				t.ports = append(t.ports, port.Port)
			}
		}
		result.targets = append(result.targets, t)
	}
	return result
}

func recordsOf(all []pick, kind uint16, ttl uint32) (r records) {
	r.count = len(all)
	for i := range all {
		r.bytes = appendRecord(r.bytes, kind, ttl, all[i].IP)
	}
	return r
}

// appendRecord appends the record of an address. Its owner is the name of the question, at offset 12 of the message.
func appendRecord(to []byte, kind uint16, ttl uint32, ip netip.Addr) []byte {
	to = append(to, 0xc0, headerSize)
	to = binary.BigEndian.AppendUint16(to, kind)
	to = binary.BigEndian.AppendUint16(to, dns.ClassINET)
	to = binary.BigEndian.AppendUint32(to, ttl)
	to = binary.BigEndian.AppendUint16(to, uint16(ip.BitLen()/8)) //nolint:gosec // 4 or 16
	return append(to, ip.AsSlice()...)
}

// addresses returns the addresses of the records.
func (r *records) addresses() []netip.Addr {
	all := make([]netip.Addr, 0, r.count)
	for n := range r.count {
		size := len(r.bytes) / r.count
		ip, _ := netip.AddrFromSlice(r.bytes[n*size+headerSize : (n+1)*size])
		all = append(all, ip)
	}
	return all
}
