package random

import (
	"math"
	"net/netip"
	"strconv"
	"strings"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// namespace makes the namespace of the i-th object: few share one.
func namespace(i int) string { return name("ns-", i/5, maxLabel) }

// Service makes the i-th service. Hostnames and zones are those of its backends.
func (m *Maker) Service(i int) model.Service {
	s := model.Service{
		Cluster: m.cluster.Name, ClusterID: m.cluster.ID,
		Namespace: namespace(i), Name: name("svc-", i, maxLabel),
		Frontends: map[netip.Addr]model.Ports{},
		Backends:  map[netip.Addr]model.Ports{},
		Hostnames: map[netip.Addr]string{},
		Zones:     map[netip.Addr]model.Zone{},
		Labels:    m.labels(),
		Selector:  m.labels(),
		Shared:    !m.percent(5), IncludeExternal: !m.percent(5),
	}
	ports := m.ports()
	for _, of := range m.families() { // none: headless
		s.Frontends[of()] = ports
	}
	families, backends := m.families(), m.few(20)
	if i%97 == 5 { // with few ports, because etcd takes values of a megabyte
		families, backends = []func() netip.Addr{m.ipv4, m.ipv6}, 500
		ports = model.Ports{"": {Protocol: "TCP", Port: 80}}
	}
	for len(families) > 0 && len(s.Backends) < backends {
		m.backend(&s, families[m.r.IntN(len(families))](), ports)
	}
	return s
}

// families picks no, one or both families of addresses.
func (m *Maker) families() []func() netip.Addr {
	return pick(m.r, nil,
		[]func() netip.Addr{m.ipv4}, []func() netip.Addr{m.ipv6}, []func() netip.Addr{m.ipv4, m.ipv6})
}

// backend adds a backend, with or without its hostname and its zone.
func (m *Maker) backend(s *model.Service, addr netip.Addr, ports model.Ports) {
	if m.percent(10) {
		ports = m.ports()
	}
	s.Backends[addr] = ports
	if m.percent(30) {
		s.Hostnames[addr] = pick(m.r, "", "pod-0", name("host", 7, maxLabel))
	}
	if m.percent(40) {
		s.Zones[addr] = model.Zone{Zone: m.zone(), ForZones: m.zones()}
	}
}

func (m *Maker) zone() string {
	return pick(m.r, "", "zone-a", "eu-west-1b", "Rack_7.A", strings.Repeat("z", maxLabel))
}

func (m *Maker) zones() []model.ForZone {
	zones := []model.ForZone{}
	for range m.few(8) {
		zones = append(zones, model.ForZone{Name: m.zone()})
	}
	return zones
}

// ports makes ports: none, the one without a name, or several.
func (m *Maker) ports() model.Ports {
	ports := model.Ports{}
	for i := range m.few(100) {
		name := pick(m.r, "", "http", "a", "port-with-15char", "0-longer-than-fifteen-characters")
		if name != "" {
			name += strconv.Itoa(i)
		}
		ports[name] = model.L4{
			Protocol: pick(m.r, "TCP", "UDP", "SCTP"),
			Port:     pick(m.r, uint16(0), 1, 80, 8080, math.MaxUint16),
		}
	}
	return ports
}
