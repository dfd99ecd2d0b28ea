package backends

import (
	"slices"
	"strconv"

	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// Port chooses among the ports of a service: all of them, the zero value, or those of a name or a
// number. A number is that of the service, which clients know; where no cluster says which ports its
// service has, as for a headless one, it is that of the backends.
type Port struct {
	named  bool
	name   string
	proto  string // of a named one; empty for all
	number uint16
}

// ParsePort reads a name or a number; empty means all ports. A name in digits alone is none in
// Kubernetes, so that nothing is both.
func ParsePort(text string) Port {
	if n, err := strconv.ParseUint(text, 10, 16); err == nil && n > 0 {
		return Port{number: uint16(n)}
	}
	return Port{named: text != "", name: text}
}

// NamedPort is the port of a name, which may be empty, with a protocol, such as TCP.
func NamedPort(name, protocol string) Port { return Port{named: true, name: name, proto: protocol} }

// Any tells whether all ports are asked for.
func (p Port) Any() bool { return p == Port{} }

// String is what [ParsePort] reads.
func (p Port) String() string {
	if p.number > 0 {
		return strconv.Itoa(int(p.number))
	}
	return p.name
}

// within is the name of the port that has such a number in the service: the own cluster says it, or
// the first one that does. Without one the number is that of the backends.
func (p Port) within(g *services.Global) Port {
	if p.number == 0 {
		return p
	}
	find := func(part *services.Service) (Port, bool) {
		for _, o := range part.Ports {
			if o.Port == p.number {
				return NamedPort(o.Name, o.Protocol), true
			}
		}
		return Port{}, false
	}
	if l := g.Local(); l != nil {
		if named, found := find(l); found {
			return named
		}
	}
	for _, part := range g.Parts {
		if named, found := find(part); found && part.Offers() {
			return named
		}
	}
	return p
}

func (p Port) matches(o services.Port) bool {
	switch {
	case p.number > 0:
		return o.Port == p.number
	case p.named:
		return o.Name == p.name && (p.proto == "" || o.Protocol == p.proto)
	}
	return true
}

// of are the ports that match among those of a backend. They may be a part of the same list.
func (p Port) of(ports []services.Port) []services.Port {
	first := slices.IndexFunc(ports, p.matches)
	if first < 0 {
		return nil
	}
	last := first + 1
	for last < len(ports) && p.matches(ports[last]) {
		last++
	}
	if slices.ContainsFunc(ports[last:], p.matches) { // they do not stand together
		return slices.DeleteFunc(slices.Clone(ports), func(o services.Port) bool { return !p.matches(o) })
	}
	return ports[first:last:last]
}
