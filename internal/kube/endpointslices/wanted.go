package endpointslices

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/mesh-agent/mesh-agent/pkg/backends"
	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// MaxPorts is how many ports of a backend are written. The API server would take more; no Service has
// as many, and a remote could have all readers of slices read them.
const MaxPorts = 100

// place is the key that separates slices, regardless of their ports.
type place struct {
	cluster string
	family  discoveryv1.AddressType
}

func (p place) compare(o place) int {
	return cmp.Or(strings.Compare(p.cluster, o.cluster), strings.Compare(string(p.family), string(o.family)))
}

// group is endpoints of a place that have the same ports.
type group struct {
	key       string // of the ports
	ports     []discoveryv1.EndpointPort
	endpoints []discoveryv1.Endpoint // with one address each, sorted by it
}

// wanted is what a service's slices should hold: a place without a group has a slice without endpoints.
type wanted map[place][]group

// state is what the conditions of an endpoint say.
type state uint8

const (
	inUse    state = iota // connections go to it now
	draining              // it terminates, and keeps what it has
	standby               // it is for when those that are better fail
)

func (s state) conditions() discoveryv1.EndpointConditions {
	return discoveryv1.EndpointConditions{Ready: new(s == inUse), Serving: new(true), Terminating: new(s == draining)}
}

// want returns what the slices of a Service should hold (mcs.md C). A cluster that shares the service has a place for
// each family. Backends with refused addresses are not in it; own reports whether an address belongs to the own
// cluster, and may be nil.
func want(svc *corev1.Service, g *services.Global, own func(netip.Addr) bool) (w wanted, refused Refused) {
	w = make(wanted)
	if g == nil {
		return w, refused
	}
	of := families(svc)
	for _, part := range g.Parts {
		if part.Local() || !part.Offers() {
			continue
		}
		for _, f := range of {
			w[place{part.Cluster, f}] = nil
		}
	}
	refuse := func(b *backends.Backend) bool { return refused.note(b, own) }
	byKey := make(map[place]map[string]*group)
	served := false
	for _, choice := range backends.Choose(g, backends.Port{}, backends.Asker{}).Groups {
		s := standby
		if !served {
			s = inUse
		}
		served = served || len(choice.Backends) > 0
		w.add(byKey, choice.Backends, s, refuse)
		w.add(byKey, choice.Draining, draining, refuse)
	}
	for at, groups := range byKey {
		for _, one := range groups {
			w[at] = append(w[at], *one)
		}
		slices.SortFunc(w[at], func(a, b group) int { return strings.Compare(a.key, b.key) })
	}
	return w, refused
}

// add sorts backends into the places that there are.
func (w wanted) add(to map[place]map[string]*group, all []backends.Backend, s state, refuse func(*backends.Backend) bool) {
	for i := range all {
		b := &all[i]
		at := place{b.Cluster, familyOf(b.IP)}
		if _, has := w[at]; b.Local || !has || refuse(b) {
			continue
		}
		ports := portsOf(b.Ports)
		if len(ports) == 0 && len(b.Ports) > 0 {
			continue // none of them is one
		}
		key := keyOf(ports)
		if to[at] == nil {
			to[at] = make(map[string]*group)
		}
		if to[at][key] == nil {
			to[at][key] = &group{key: key, ports: ports}
		}
		to[at][key].endpoints = append(to[at][key].endpoints, endpoint(b, s))
	}
}

// endpoint is in the zone and on the node of its cluster's name (mcs.md C).
func endpoint(b *backends.Backend, s state) discoveryv1.Endpoint {
	e := discoveryv1.Endpoint{
		Addresses: []string{b.IP.String()}, Conditions: s.conditions(), NodeName: new(b.Cluster), Zone: new(b.Cluster),
	}
	if b.Hostname != "" && len(validation.IsDNS1123Label(b.Hostname)) == 0 {
		e.Hostname = new(b.Hostname)
	}
	return e
}

func familyOf(ip netip.Addr) discoveryv1.AddressType {
	if ip.Is4() {
		return discoveryv1.AddressTypeIPv4
	}
	return discoveryv1.AddressTypeIPv6
}

// portsOf are ports as a slice may have them: each name once, the one with the least number.
func portsOf(all []services.Port) (ports []discoveryv1.EndpointPort) {
	named := make(map[string]bool, len(all))
	for _, p := range all {
		if len(ports) == MaxPorts {
			break
		}
		if named[p.Name] || p.Port == 0 || !knownProtocol(p.Protocol) || p.Name != "" && len(validation.IsDNS1123Label(p.Name)) > 0 {
			continue
		}
		named[p.Name] = true
		ports = append(ports, discoveryv1.EndpointPort{Name: new(p.Name), Protocol: new(corev1.Protocol(p.Protocol)), Port: new(int32(p.Port))})
	}
	return ports
}

func knownProtocol(p string) bool {
	return p == string(corev1.ProtocolTCP) || p == string(corev1.ProtocolUDP) || p == string(corev1.ProtocolSCTP)
}

// keyOf is the same for the same ports in the same order.
func keyOf(ports []discoveryv1.EndpointPort) string {
	var b strings.Builder
	for _, p := range ports {
		b.WriteString(value(p.Name) + "/" + string(value(p.Protocol)) + "/" + strconv.Itoa(int(value(p.Port))) + ",")
	}
	return b.String()
}

// value is what a pointer leads to, or the zero value.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
