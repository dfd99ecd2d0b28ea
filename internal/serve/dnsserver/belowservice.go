package dnsserver

import (
	"hash/maphash"
	"iter"
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/backends"
	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// The names below a service are kept, too. So a client that asks for many names that do not exist does not make the
// agent search a large service for each of them.

// ports has the named ports and the protocols of the backends of a service, each as a number. The value is true if a
// backend that does not terminate has it.
type ports struct {
	seed maphash.Seed
	all  map[uint64]bool
	some bool // there are more ports than are kept
}

const mostPorts = 1 << 16 // different ports that are kept of a service

// ports returns the ports of a service, or of the part of one cluster if cluster is not empty.
func (r *resolver) ports(g *services.Global, cluster string) *ports {
	key := keptKey{kind: keptPorts, namespace: g.Namespace, name: g.Name, cluster: cluster}
	return remember(r.kept, key, g, func() (*ports, int64) {
		p := &ports{seed: r.seed, all: make(map[uint64]bool)}
		p.read(g, cluster)
		return p, int64(64 * (1 + len(p.all)))
	})
}

func (p *ports) read(g *services.Global, cluster string) {
	var last []services.Port // most backends share their list of ports
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

// any is the number that each backend has. port is the number of a port with its protocol, in their original case.
// protocol is the number that all named ports of a protocol share.
func (p *ports) any() uint64 { return maphash.Comparable(p.seed, true) }

func (p *ports) port(name, protocol string) uint64 {
	return maphash.Comparable(p.seed, [2]string{name, protocol})
}

func (p *ports) protocol(protocol string) uint64 {
	return maphash.String(p.seed, strings.ToUpper(protocol))
}

// has reports whether there may be a port. stay reports whether a backend that does not terminate may have it.
func (p *ports) has(number uint64) bool {
	_, has := p.all[number]
	return has || p.some
}

func (p *ports) stay(number uint64) bool {
	stays, has := p.all[number]
	return stays || !has && p.some
}

// hosts has the backends of a cluster in a service, by the number of their host name.
type hosts struct {
	seed  maphash.Seed
	inUse bool
	// named has an entry for each usable backend with a valid host name: the number of its host name (32 bits),
	// whether it terminates (1 bit), and its index in the part (31 bits). It is sorted. For each name and family, it
	// has at most as many backends as an answer may have.
	named []uint64
}

const terminates = 1 << 31

// hosts returns the hosts of the part of a cluster.
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

// of iterates over the usable backends with this host name or dashed address.
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
