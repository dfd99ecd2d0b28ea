package random

import (
	"math"
	"net/netip"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// EndpointSlice makes the i-th slice.
func (m *Maker) EndpointSlice(i int) model.EndpointSlice {
	s := model.EndpointSlice{
		Cluster: m.cluster.Name, ClusterID: m.cluster.ID,
		Namespace: namespace(i), Name: name("slice-", i, maxName),
		Labels:      m.labels(),
		Annotations: m.annotations(),
		AddressType: "IPv4",
	}
	of := m.ipv4
	if m.percent(50) {
		s.AddressType, of = "IPv6", m.ipv6
	}
	endpoints := m.few(20)
	if i%97 == 5 {
		endpoints = 500
	}
	for range endpoints {
		s.Endpoints = append(s.Endpoints, m.endpoint(of))
	}
	for range m.few(100) {
		s.Ports = append(s.Ports, model.EndpointPort{
			Name:        maybe(m.r, pick(m.r, "", "http", name("p-", 7, maxLabel))),
			Protocol:    maybe(m.r, pick(m.r, "TCP", "UDP", "SCTP", "")),
			AppProtocol: maybe(m.r, pick(m.r, "", "kubernetes.io/h2c", m.labelKey(7))),
			Port:        maybe(m.r, pick(m.r, int32(0), 1, 80, math.MaxUint16, math.MaxInt32, math.MinInt32, -1)),
		})
	}
	return s
}

func (m *Maker) endpoint(of func() netip.Addr) model.Endpoint {
	e := model.Endpoint{
		Conditions: model.Conditions{Ready: m.flag(), Serving: m.flag(), Terminating: m.flag()},
		Hostname:   maybe(m.r, pick(m.r, "", "pod-0", name("host", 7, maxLabel))),
		NodeName:   maybe(m.r, pick(m.r, "", "node-1", name("node-", 7, maxName))),
		Zone:       maybe(m.r, m.zone()),
	}
	for range m.few(100) {
		e.Addresses = append(e.Addresses, of().String())
	}
	if m.percent(10) {
		e.DeprecatedTopology = m.labels()
	}
	if m.percent(50) {
		e.Hints = &model.Hints{ForZones: m.zones()}
	}
	return e
}
