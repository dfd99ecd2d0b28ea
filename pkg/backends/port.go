package backends

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// Port selects ports of a service: all of them, the zero value, or those of a name or a number, with a protocol or
// without. A number is that of the service, which clients use; where no cluster exports the ports of its service, as
// for a headless one, it is that of the backends. If several protocols have a number, and none is given, the number
// means TCP.
type Port struct {
	named  bool
	name   string
	proto  string // empty for all, or for TCP if it has the number
	number uint16
}

// ParsePort parses a name or a number, with an optional protocol as in "/UDP"; empty means all ports. Kubernetes allows
// no name of digits alone, so a text is never both.
func ParsePort(text string) Port {
	text, proto, _ := strings.Cut(text, "/")
	proto = strings.ToUpper(proto)
	if n, err := strconv.ParseUint(text, 10, 16); err == nil && n > 0 {
		return Port{number: uint16(n), proto: proto}
	}
	return Port{named: text != "" || proto != "", name: text, proto: proto}
}

// CheckPort returns an error for a text that no port can have; [ParsePort] parses this text as a name that no port has.
func CheckPort(text string) error {
	name, proto, given := strings.Cut(text, "/")
	wrong := given && !slices.Contains([]string{"TCP", "UDP", "SCTP"}, strings.ToUpper(proto))
	if strings.Trim(name, "0123456789") == "" {
		n, err := strconv.ParseUint(name, 10, 16)
		wrong = wrong || name != "" && (err != nil || n == 0)
	} else {
		wrong = wrong || len(validation.IsDNS1123Label(name)) > 0
	}
	if wrong {
		return fmt.Errorf("%.80q is no port: give its name or a number from 1 to 65535, with /TCP, /UDP or /SCTP behind it for one protocol", text)
	}
	return nil
}

// NamedPort returns the port of a name, which may be empty, with a protocol, such as TCP.
func NamedPort(name, protocol string) Port { return Port{named: true, name: name, proto: protocol} }

// Any reports whether all ports are selected.
func (p Port) Any() bool { return p == Port{} }

// String returns a text for [ParsePort].
func (p Port) String() string {
	text := p.name
	if p.number > 0 {
		text = strconv.Itoa(int(p.number))
	}
	if p.proto != "" {
		text += "/" + p.proto
	}
	return text
}

// tcp is the protocol of a number without a protocol, if a port has both.
const tcp = "TCP"

// within replaces a number by the name that it has in the service: in the own cluster's part, else in the first part
// that has the number. If no part has it, the number is that of the backends.
func (p Port) within(g *services.Global) Port {
	if p.number == 0 {
		return p
	}
	find := func(part *services.Service) (found Port, is bool) {
		if all := p.of(part.Ports); len(all) > 0 {
			return NamedPort(all[0].Name, all[0].Protocol), true
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
	case p.proto != "" && p.proto != o.Protocol:
		return false
	case p.number > 0:
		return o.Port == p.number
	case p.named:
		return o.Name == p.name
	}
	return true
}

// of returns the ports that match among those of a backend, or of a service. The result may be a part of the same list.
func (p Port) of(ports []services.Port) []services.Port {
	if p.number > 0 && p.proto == "" {
		if first := (Port{number: p.number, proto: tcp}).list(ports); len(first) > 0 {
			return first
		}
	}
	return p.list(ports)
}

func (p Port) list(ports []services.Port) []services.Port {
	first := slices.IndexFunc(ports, p.matches)
	if first < 0 {
		return nil
	}
	last := first + 1
	for last < len(ports) && p.matches(ports[last]) {
		last++
	}
	if slices.ContainsFunc(ports[last:], p.matches) { // they are not adjacent
		return slices.DeleteFunc(slices.Clone(ports), func(o services.Port) bool { return !p.matches(o) })
	}
	return ports[first:last:last]
}
