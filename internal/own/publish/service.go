package publish

import (
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Exported reports whether the service is published to other clusters: it is global, not
// withheld by its annotations, and in a namespace that is global (spec wire.md §1.3, §4.5).
// The namespace is nil when nothing is known of it, which is as one without annotations.
func Exported(svc *corev1.Service, namespace *corev1.Namespace, defaultGlobal bool) bool {
	a, _ := wire.ParseServiceAnnotations(svc.Annotations) // it is valid even with an unknown affinity
	return a.Shared && global(namespace, defaultGlobal)
}

// global reports whether the objects of the namespace are published to other clusters.
func global(namespace *corev1.Namespace, byDefault bool) bool {
	if namespace == nil {
		return byDefault
	}
	return wire.NamespaceIsGlobal(namespace.Annotations, byDefault)
}

// Service is what the cluster publishes of a service in the older format: its addresses, and
// the endpoints of its slices that are ready or serving (spec wire.md §1.3), whether or not
// it is [Exported]. The maps of labels and of the selector are shared with svc.
func Service(cluster wire.ClusterInfo, svc *corev1.Service, of []*discoveryv1.EndpointSlice) *wire.Service {
	s := &wire.Service{
		Cluster: cluster.Name, ClusterID: cluster.ID,
		Namespace: svc.Namespace, Name: svc.Name,
		Frontends: frontends(svc), Backends: make(map[string]wire.Ports),
		Hostnames: make(map[string]string), Zones: make(map[string]wire.Zone),
		Labels: orEmpty(svc.Labels), Selector: orEmpty(svc.Spec.Selector),
		IncludeExternal: true, Shared: true,
	}
	// By name, so that what two of them say of one address does not depend on chance.
	for _, slice := range slices.SortedFunc(slices.Values(of), func(a, b *discoveryv1.EndpointSlice) int { return strings.Compare(a.Name, b.Name) }) {
		addBackends(s, slice)
	}
	return s
}

// frontless reports whether the service is published without addresses: it has none, or no proxy is to use it.
func frontless(svc *corev1.Service) bool {
	_, labelled := svc.Labels[wire.LabelHeadless]
	return labelled || headless(svc)
}

// headless reports whether the service has no address of its own.
func headless(svc *corev1.Service) bool {
	return slices.ContainsFunc(clusterIPs(svc), func(ip string) bool { return strings.EqualFold(ip, corev1.ClusterIPNone) })
}

func clusterIPs(svc *corev1.Service) []string {
	if len(svc.Spec.ClusterIPs) > 0 {
		return svc.Spec.ClusterIPs
	}
	return []string{svc.Spec.ClusterIP}
}

// frontends are the ports of each cluster IP.
func frontends(svc *corev1.Service) map[string]wire.Ports {
	out := make(map[string]wire.Ports)
	if frontless(svc) {
		return out
	}
	ports := make(wire.Ports)
	for _, p := range svc.Spec.Ports {
		addPort(ports, p.Name, string(p.Protocol), p.Port)
	}
	for _, text := range clusterIPs(svc) {
		if ip, ok := address(text); ok {
			out[ip.String()] = ports
		}
	}
	return out
}

// address reads an address. One with a zone, or that is none, is no address that
// another cluster could use, and would have it refuse the whole entry.
func address(text string) (netip.Addr, bool) {
	ip, err := netip.ParseAddr(text)
	return ip.Unmap(), err == nil && ip.Zone() == ""
}

// addPort adds a port, unless it has no number or an unknown protocol.
func addPort(to wire.Ports, name, protocol string, number int32) {
	if protocol == "" {
		protocol = string(corev1.ProtocolTCP)
	}
	if knownProtocol(protocol) && number > 0 && number <= math.MaxUint16 {
		to[name] = &wire.L4{Protocol: protocol, Port: uint16(number)}
	}
}

func knownProtocol(p string) bool {
	return slices.Contains([]corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}, corev1.Protocol(p))
}

// addBackends adds the endpoints of a slice that are ready or serving.
func addBackends(to *wire.Service, slice *discoveryv1.EndpointSlice) {
	if !publishable(slice) {
		return
	}
	ports := make(wire.Ports)
	for _, p := range slice.Ports {
		addPort(ports, value(p.Name), string(value(p.Protocol)), value(p.Port))
	}
	for i := range slice.Endpoints {
		e := &slice.Endpoints[i]
		if c := e.Conditions; c.Ready != nil && !*c.Ready && !value(c.Serving) { // unset is ready, and serving as far as ready
			continue
		}
		for _, text := range e.Addresses {
			if ip, ok := address(text); ok {
				addBackend(to, ip.String(), ports, e)
			}
		}
	}
}

func addBackend(to *wire.Service, ip string, ports wire.Ports, e *discoveryv1.Endpoint) {
	if to.Backends[ip] == nil {
		to.Backends[ip] = make(wire.Ports, len(ports))
	}
	maps.Copy(to.Backends[ip], ports)
	if name := value(e.Hostname); name != "" {
		to.Hostnames[ip] = name
	}
	if zone := value(e.Zone); zone != "" {
		to.Zones[ip] = wire.Zone{Zone: zone, ForZones: forZones(e.Hints)}
	}
}

func forZones(hints *discoveryv1.EndpointHints) []wire.ForZone {
	out := []wire.ForZone{}
	if hints != nil {
		for _, z := range hints.ForZones {
			out = append(out, wire.ForZone{Name: z.Name})
		}
	}
	return out
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// value is what a pointer leads to, or the zero value.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
