package services

import (
	"iter"
	"math"
	"net/netip"
	"slices"
	"strings"
	"unique"

	"github.com/mesh-agent/mesh-agent/pkg/identities"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Slice is one endpoint slice of one cluster, in compact form (wire.md §1.4). The same endpoints usually exist in an
// entry of the older form too, so it must use little memory. It is immutable. Cluster, Namespace and Name identify it.
type Slice struct {
	Cluster         string
	ClusterID       uint32
	Source          wire.Source // where this process read it
	Namespace, Name string
	Service         string            // the service's name; empty when it belongs to none
	ports           []Port            // of all endpoints; sorted, no duplicates
	endpoints       []endpoint        // sorted by address, one for each
	labels          identities.Labels // of the service; sorted by key
}

// endpoint is a backend without ports. Names of nodes and zones are shared by all slices, since many endpoints have the
// same; an absent name is a zero handle.
type endpoint struct {
	ip         [16]byte // an IPv4 address is mapped
	node, zone unique.Handle[string]
	hostname   *string // nil for none; almost all are different
	conditions Conditions
}

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
		out = append(out, Port{Name: orEmpty(p.Name), Protocol: proto, Port: uint16(*p.Port)})
	}
	if len(out) == 0 {
		return nil
	}
	return slices.Clip(slices.Compact(sortPorts(out)))
}

// sliceProtocol returns the protocol of a port; an absent one is TCP.
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
	n := 0
	for i := range from {
		n += len(from[i].Addresses)
	}
	if n == 0 {
		return nil
	}
	out := make([]endpoint, 0, n)
	for i := range from {
		out = appendEndpoint(out, &from[i])
	}
	slices.SortStableFunc(out, func(a, b endpoint) int { return a.addr().Compare(b.addr()) })
	for i := 1; i < len(out); i++ {
		if out[i].ip == out[i-1].ip {
			return foldEndpoints(out)
		}
	}
	return out
}

// appendEndpoint appends the addresses of an endpoint.
func appendEndpoint(to []endpoint, w *wire.Endpoint) []endpoint {
	e := endpoint{conditions: conditionsFromWire(w.Conditions), node: intern(orEmpty(w.NodeName)), zone: intern(orEmpty(w.Zone))}
	if orEmpty(w.Hostname) != "" {
		e.hostname = w.Hostname
	}
	for _, text := range w.Addresses {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			continue // the decoder refuses these
		}
		e.ip = ip.As16()
		to = append(to, e)
	}
	return to
}

// addr returns the address; an IPv4-mapped one becomes IPv4.
func (e *endpoint) addr() netip.Addr { return netip.AddrFrom16(e.ip).Unmap() }

func (e *endpoint) backend(ports []Port) Backend {
	return Backend{
		IP: e.addr(), Ports: ports, Conditions: e.conditions,
		Node: text(e.node), Zone: text(e.zone), Hostname: orEmpty(e.hostname),
	}
}

func (e endpoint) equal(o endpoint) bool {
	return e.ip == o.ip && e.conditions == o.conditions && e.node == o.node && e.zone == o.zone &&
		orEmpty(e.hostname) == orEmpty(o.hostname)
}

// serviceLabels returns the labels that the slice has from its service. Kubernetes copies those and adds its own.
func serviceLabels(from map[string]string) identities.Labels {
	out := make(wire.Labels, 0, len(from))
	for key, value := range from {
		if key != wire.LabelServiceName && key != wire.LabelHeadless && !strings.HasPrefix(key, "endpointslice.kubernetes.io/") {
			out = append(out, wire.Label{Key: key, Value: value})
		}
	}
	slices.SortFunc(out, func(a, b wire.Label) int { return strings.Compare(a.Key, b.Key) })
	return identities.NewLabels(out)
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

// serviceKey returns the key of the slice's service; empty when it belongs to none.
func (s *Slice) serviceKey() string {
	if s.Service == "" {
		return ""
	}
	return key(s.Cluster, s.Namespace, s.Service)
}

// NumEndpoints returns the number of addresses.
func (s *Slice) NumEndpoints() int { return len(s.endpoints) }

// Endpoints iterates over the addresses in their order, also over those that are
// neither ready nor serving. They share their ports.
func (s *Slice) Endpoints() iter.Seq[Backend] {
	return func(yield func(Backend) bool) {
		for i := range s.endpoints {
			if !yield(s.endpoints[i].backend(s.ports)) {
				return
			}
		}
	}
}

// Equal reports whether both have the same contents.
func (s *Slice) Equal(o *Slice) bool {
	return s == o ||
		s.Cluster == o.Cluster && s.ClusterID == o.ClusterID && s.Source == o.Source &&
			s.Namespace == o.Namespace && s.Name == o.Name && s.Service == o.Service &&
			slices.Equal(s.ports, o.ports) && slices.EqualFunc(s.endpoints, o.endpoints, endpoint.equal) && s.labels == o.labels
}

// Addresses iterates over the addresses of the endpoints.
func (s *Slice) Addresses() iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		for _, e := range s.endpoints {
			if !yield(e.addr()) {
				return
			}
		}
	}
}
