package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"

	"github.com/mesh-agent/mesh-agent/internal/base/plainjson"
)

// serviceJSON is the form in which a service is read. Its maps replace the service's own: they charge the
// memory that they build, and allocate it at once in full size.
type serviceJSON struct {
	*Service
	Frontends addressPorts       `json:"frontends"`
	Backends  addressPorts       `json:"backends"`
	Hostnames boundedMap[string] `json:"hostnames"`
	Zones     boundedMap[Zone]   `json:"zones"`
	Labels    boundedMap[string] `json:"labels"`
	Selector  boundedMap[string] `json:"selector"`
}

func parseService(value []byte) (*Service, error) {
	m := newMeter(len(value))
	s := shapeOf(value)
	if err := atMost(maxNesting, s.depth, "levels of nesting"); err != nil {
		return nil, err
	}
	if err := m.take(s.top*costField + s.costTexts()); err != nil {
		return nil, err
	}
	in := serviceJSON{
		Service:   new(Service),
		Frontends: addressPorts{m: map[string]Ports{}, meter: &m},
		Backends:  addressPorts{m: map[string]Ports{}, meter: &m},
		Hostnames: boundedMap[string]{bound: maxBackends, cost: costTextEntry, meter: &m},
		Zones:     boundedMap[Zone]{what: "zones", bound: maxBackends, cost: costZone, meter: &m},
		Labels:    boundedMap[string]{m: map[string]string{}, bound: maxLabels, cost: costTextEntry, meter: &m},
		Selector:  boundedMap[string]{m: map[string]string{}, bound: maxLabels, cost: costTextEntry, meter: &m},
	}
	if err := json.Unmarshal(value, &in); err != nil {
		return nil, rejectDecode(err)
	}
	in.Service.Frontends, in.Service.Backends = in.Frontends.m, in.Backends.m
	in.Service.Hostnames, in.Service.Zones = in.Hostnames.m, in.Zones.m
	in.Service.Labels, in.Service.Selector = in.Labels.m, in.Selector.m
	return in.Service, nil
}

const (
	// costBackend is an address in a map, and a backend of pkg/services.
	costBackend = 200
	// costPortMap is a map of ports, with the first eight.
	costPortMap = 264
	// costServicePort is a port in a map of ports, and one of pkg/services.
	costServicePort = 200
	// costParser is the memory of a further call of encoding/json.
	costParser = 200
	// costTextEntry and costZone are an entry of a map that is made in full size,
	// costForZone is a zone in a hint.
	costTextEntry = 200
	costZone      = 320
	costForZone   = 168
)

// addressPorts reads frontends and backends.
type addressPorts struct {
	m     map[string]Ports
	meter *meter
	known [4]knownPorts // nearly always all addresses have the same ports
	next  int
	empty Ports // of all addresses that have none
}

// knownPorts are ports and the text that they were read from.
type knownPorts struct {
	text  []byte
	ports Ports
}

// UnmarshalJSON implements [json.Unmarshaler].
func (a *addressPorts) UnmarshalJSON(text []byte) error {
	all, ok := membersOf(text)
	if !ok {
		return json.Unmarshal(text, &a.m) // null, or an error
	}
	n := all.count()
	if err := atMost(maxBackends, n, "addresses"); err != nil {
		return err
	}
	if err := a.meter.take(n * costBackend); err != nil {
		return err
	}
	if len(a.m) == 0 {
		a.m = make(map[string]Ports, n)
	}
	for all.next() {
		address, err := a.meter.unquote(all.key)
		if err != nil {
			return err
		}
		if a.m[address], err = a.ports(all.value); err != nil {
			return err
		}
	}
	return nil
}

// ports reads the ports of one address. Addresses with equal ports share them.
func (a *addressPorts) ports(text []byte) (Ports, error) {
	if string(text) == "{}" {
		if a.empty == nil {
			a.empty = Ports{}
		}
		return a.empty, nil
	}
	for _, known := range a.known {
		if known.text != nil && bytes.Equal(known.text, text) {
			return known.ports, nil
		}
	}
	ports, err := a.newPorts(text)
	a.known[a.next] = knownPorts{text, ports}
	a.next = (a.next + 1) % len(a.known)
	return ports, err
}

func (a *addressPorts) newPorts(text []byte) (Ports, error) {
	all, ok := membersOf(text)
	n := all.count()
	if err := atMost(maxPorts, n, "ports of one address"); err != nil {
		return nil, err
	}
	if err := a.meter.take(costPortMap + n*costServicePort); err != nil {
		return nil, err
	}
	if ok {
		if ports := usualPorts(all, n); ports != nil {
			return ports, nil
		}
	}
	if err := a.meter.take(costParser + n*costField); err != nil {
		return nil, err
	}
	var ports Ports
	return ports, json.Unmarshal(text, &ports)
}

// usualPorts reads ports in the form that writers normally write. For other forms it returns nil, and builds
// nothing.
func usualPorts(all members, n int) Ports {
	for look := all; look.next(); {
		if _, _, ok := usualPort(look); !ok {
			return nil
		}
	}
	ports := make(Ports, n)
	for all.next() {
		name, port, _ := usualPort(all)
		ports[string(name)] = &port
	}
	return ports
}

// usualPort reads the port in the current member of m.
func usualPort(m members) (name []byte, port L4, ok bool) {
	key, value := plainjson.NewScanner(m.key), plainjson.NewScanner(m.value)
	if name, ok = key.Text(); !ok || !value.Literal(`{"Protocol":`) {
		return nil, L4{}, false
	}
	text, ok := value.Text()
	if !ok || !value.Literal(`,"Port":`) {
		return nil, L4{}, false
	}
	protocol, ok := knownProtocol(text)
	if !ok {
		return nil, L4{}, false
	}
	number, ok := value.Number(math.MaxUint16)
	if !ok || !value.Literal("}") || !value.Done() {
		return nil, L4{}, false
	}
	return name, L4{Protocol: protocol, Port: uint16(number)}, true
}

// knownProtocol returns the protocol, without an allocation.
func knownProtocol(b []byte) (string, bool) {
	for _, known := range [...]string{"TCP", "UDP", "SCTP", "NONE", "ANY", ""} {
		if string(b) == known {
			return known, true
		}
	}
	return "", false
}

// boundedMap reads a map of texts or zones.
type boundedMap[V any] struct {
	m     map[string]V
	what  string // their name in an error; empty is members in a map
	bound int
	cost  int // of an entry
	meter *meter
}

// UnmarshalJSON implements [json.Unmarshaler].
func (b *boundedMap[V]) UnmarshalJSON(text []byte) error {
	if _, ok := membersOf(text); ok {
		s := shapeOf(text)
		if err := atMost(b.bound, s.top, cmp.Or(b.what, "members in a map")); err != nil {
			return err
		}
		if err := b.meter.take(s.top*b.cost + (s.second+s.deeper)*costField + s.items*costForZone + costParser); err != nil {
			return err
		}
		if len(b.m) == 0 {
			b.m = make(map[string]V, s.top)
		}
	}
	return json.Unmarshal(text, &b.m)
}
