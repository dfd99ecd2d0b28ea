package dnsserver

import (
	"hash/maphash"
	"iter"
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/backends"
	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// Which names there are below a service is kept, too: nobody who asks for names that do not exist makes the
// agent look through a large service for each of them.

// ports are the named ports and the protocols of the backends of a service, by a number for each: true where a
// backend has it that does not terminate.
type ports struct {
	seed maphash.Seed
	all  map[uint64]bool
	some bool // there are more than are kept
}

const mostPorts = 1 << 16 // different ones of a service, of those that are kept

// ports returns those of a service, or of one cluster's part in it.
func (r *resolver) ports(g *services.Global, cluster string) *ports {
	key := keptKey{kind: keptPorts, namespace: g.Namespace, name: g.Name, cluster: cluster}
	return remember(r.kept, key, g, func() (*ports, int64) {
		p := &ports{seed: r.seed, all: make(map[uint64]bool)}
		p.read(g, cluster)
		return p, int64(64 * (1 + len(p.all)))
	})
}

func (p *ports) read(g *services.Global, cluster string) {
	var last []services.Port // backends share their list of ports, mostly
	lastStays := false
	for part, b := range backends.Usable(g) {
		if cluster != "" && part.Cluster != cluster {
			continue
		}
		stays := !b.Terminating()
		if len(b.Ports) > 0 && len(last) == len(b.Ports) && &last[0] == &b.Ports[0] && lastStays == stays {
			continue
		}
		last, lastStays = b.Ports, stays
		p.add(p.any(), stays)
		for _, o := range b.Ports {
			p.add(p.port(o.Name, o.Protocol), stays)
			if o.Name != "" {
				p.add(p.protocol(o.Protocol), stays)
			}
		}
	}
}

func (p *ports) add(number uint64, stays bool) {
	already, has := p.all[number]
	switch {
	case !has && len(p.all) >= mostPorts:
		p.some = true
	case !has || stays && !already:
		p.all[number] = stays
	}
}

// any is the number of what all backends have. port is that of a port with its protocol, as it is written, and
// protocol that of all named ports of a protocol.
func (p *ports) any() uint64 { return maphash.Comparable(p.seed, true) }

func (p *ports) port(name, protocol string) uint64 {
	return maphash.Comparable(p.seed, [2]string{name, protocol})
}

func (p *ports) protocol(protocol string) uint64 {
	return maphash.String(p.seed, strings.ToUpper(protocol))
}

// has reports whether there may be a port, stay whether a backend has it that does not terminate.
func (p *ports) has(number uint64) bool {
	_, has := p.all[number]
	return has || p.some
}

func (p *ports) stay(number uint64) bool {
	stays, has := p.all[number]
	return stays || !has && p.some
}

// hosts are the backends that a cluster has in a service, by the number of their host name.
type hosts struct {
	seed  maphash.Seed
	inUse bool
	// named has the number of a name, whether the backend terminates, and where it is among the part's, which
	// are 32, 1 and 31 bits; sorted. Of those of one name and family it has as many as an answer may have.
	named []uint64
}

const terminates = 1 << 31

// hosts returns those of a cluster's part.
func (r *resolver) hosts(g *services.Global, part *services.Service) *hosts {
	key := keptKey{kind: keptHosts, namespace: g.Namespace, name: g.Name, cluster: part.Cluster}
	return remember(r.kept, key, g, func() (*hosts, int64) {
		h := &hosts{seed: r.seed, inUse: backends.InUse(g, part)}
		if h.inUse {
			h.read(part, r.most)
		}
		return h, int64(64 + 8*len(h.named))
	})
}

func (h *hosts) read(part *services.Service, most int) {
	named := make([]uint64, 0, len(part.Backends))
	for i := range part.Backends {
		b := &part.Backends[i]
		if !b.Usable() || !isLabel(b.Hostname) || i >= terminates {
			continue
		}
		entry := h.number(b.Hostname)<<32 | uint64(i) //nolint:gosec // was checked
		if b.Terminating() {
			entry |= terminates
		}
		named = append(named, entry)
	}
	slices.Sort(named)
	var host string
	var v4, v6 int
	h.named = slices.Clone(slices.DeleteFunc(named, func(entry uint64) bool {
		b := &part.Backends[entry&(terminates-1)]
		if b.Hostname != host {
			host, v4, v6 = b.Hostname, 0, 0
		}
		n := &v6
		if b.IP.Is4() {
			n = &v4
		}
		*n++
		return *n > most
	}))
}

func (h *hosts) number(host string) uint64 { return maphash.String(h.seed, host) >> 32 }

// of iterates over the usable backends of a host name or dashed address.
func (h *hosts) of(part *services.Service, host string) iter.Seq[*services.Backend] {
	return func(yield func(*services.Backend) bool) {
		if !h.inUse {
			return
		}
		if ip := undashed(host); ip.IsValid() {
			if b, found := part.Backend(ip); found && b.Usable() && !isLabel(b.Hostname) && !yield(&b) {
				return
			}
		}
		first, _ := slices.BinarySearch(h.named, h.number(host)<<32)
		for _, entry := range h.named[first:] {
			if entry>>32 != h.number(host) {
				return
			}
			if b := &part.Backends[entry&(terminates-1)]; b.Hostname == host && !yield(b) {
				return
			}
		}
	}
}
