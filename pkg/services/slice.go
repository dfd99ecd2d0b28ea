package services

import (
	"iter"
	"math"
	"net/netip"
	"slices"
	"strings"
	"unique"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Slice is one endpoint slice of one cluster, in compact form (wire.md §1.4): it
// usually comes beside an entry of the older form, so it must cost little. It is
// immutable. Cluster, Namespace and Name identify it.
type Slice struct {
	Cluster         string
	ClusterID       uint32
	Source          wire.Source // where we have it from
	Namespace, Name string
	Service         string     // the service's name; empty when it belongs to none
	ports           []Port     // of all endpoints; sorted, no duplicates
	endpoints       []endpoint // sorted by address, one for each
	labels          []label    // of the service; sorted by key
}

// endpoint is a backend without ports. Its texts are shared by all slices; those
// that are absent are zero handles.
type endpoint struct {
	ip                   [16]byte // an IPv4 address is mapped
	node, zone, hostname unique.Handle[string]
	conditions           Conditions
}

// label is one label; the texts are shared by all slices.
type label struct{ key, value unique.Handle[string] }

// SliceFromWire converts a decoded slice. Ports that lack a number or have an
// unknown protocol are left out, as writers of the older form do (wire.md §1.3).
func SliceFromWire(w *wire.EndpointSlice, source wire.Source) *Slice {
	return &Slice{
		Cluster: w.Cluster, ClusterID: w.ClusterID, Source: source,
		Namespace: w.Namespace, Name: w.Name,
		Service:   w.Labels[wire.LabelServiceName],
		ports:     slicePorts(w.Ports),
		endpoints: endpoints(w.Endpoints),
		labels:    serviceLabels(w.Labels),
	}
}

func slicePorts(from []wire.EndpointPort) []Port {
	out := make([]Port, 0, len(from))
	for _, p := range from {
		proto, ok := sliceProtocol(p.Protocol)
		if !ok || p.Port == nil || *p.Port <= 0 || *p.Port > math.MaxUint16 {
			continue
		}
		port := Port{Protocol: proto, Port: uint16(*p.Port)}
		if p.Name != nil {
			port.Name = *p.Name
		}
		out = append(out, port)
	}
	if len(out) == 0 {
		return nil
	}
	return slices.Clip(slices.Compact(sortPorts(out)))
}

// sliceProtocol tells which protocol is meant; an absent one is TCP.
func sliceProtocol(text *string) (string, bool) {
	if text == nil {
		return "TCP", true
	}
	switch p := protocol(*text); p {
	case "TCP", "UDP", "SCTP":
		return p, true
	}
	return "", false
}

func endpoints(from []wire.Endpoint) []endpoint {
	all := make([]Backend, 0, len(from)) // nearly all endpoints have one address
	for i := range from {
		e := &from[i]
		for _, text := range e.Addresses {
			ip, err := netip.ParseAddr(text)
			if err != nil {
				continue // the decoder refuses these
			}
			all = append(all, Backend{
				IP: ip.Unmap(), Conditions: conditionsFromWire(e.Conditions),
				Node: orEmpty(e.NodeName), Zone: orEmpty(e.Zone), Hostname: orEmpty(e.Hostname),
			})
		}
	}
	if len(all) == 0 {
		return nil
	}
	all = fold(byAddress(all))
	out := make([]endpoint, len(all))
	for i, b := range all {
		out[i] = endpoint{
			ip: b.IP.As16(), conditions: b.Conditions,
			node: intern(b.Node), zone: intern(b.Zone), hostname: intern(b.Hostname),
		}
	}
	return out
}

// serviceLabels are the labels that the slice has from its service. Kubernetes
// copies those and adds its own.
func serviceLabels(from map[string]string) []label {
	var out []label
	for key, value := range from {
		if key != wire.LabelServiceName && key != wire.LabelHeadless && !strings.HasPrefix(key, "endpointslice.kubernetes.io/") {
			out = append(out, label{intern(key), intern(value)})
		}
	}
	slices.SortFunc(out, func(a, b label) int { return strings.Compare(text(a.key), text(b.key)) })
	return slices.Clip(out)
}

func intern(s string) unique.Handle[string] {
	if s == "" {
		return unique.Handle[string]{}
	}
	return unique.Make(s)
}

func text(h unique.Handle[string]) string {
	if h == (unique.Handle[string]{}) {
		return ""
	}
	return h.Value()
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// Key is "cluster/namespace/name".
func (s *Slice) Key() string { return key(s.Cluster, s.Namespace, s.Name) }

// NumEndpoints is the number of addresses.
func (s *Slice) NumEndpoints() int { return len(s.endpoints) }

// Endpoints iterates over the addresses in their order, those that are neither
// ready nor serving included. They share their ports.
func (s *Slice) Endpoints() iter.Seq[Backend] {
	return func(yield func(Backend) bool) {
		for i := range s.endpoints {
			e := &s.endpoints[i]
			if !yield(Backend{
				IP: netip.AddrFrom16(e.ip).Unmap(), Ports: s.ports, Conditions: e.conditions,
				Node: text(e.node), Zone: text(e.zone), Hostname: text(e.hostname),
			}) {
				return
			}
		}
	}
}

// Equal tells whether both say the same.
func (s *Slice) Equal(o *Slice) bool {
	return s == o ||
		s.Cluster == o.Cluster && s.ClusterID == o.ClusterID && s.Source == o.Source &&
			s.Namespace == o.Namespace && s.Name == o.Name && s.Service == o.Service &&
			slices.Equal(s.ports, o.ports) && slices.Equal(s.endpoints, o.endpoints) && slices.Equal(s.labels, o.labels)
}

// Addresses iterates over the addresses of the endpoints.
func (s *Slice) Addresses() iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		for _, e := range s.endpoints {
			if !yield(netip.AddrFrom16(e.ip).Unmap()) {
				return
			}
		}
	}
}
