package agreement

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mesh-agent/mesh-agent/internal/kube/endpointslices"
	"github.com/mesh-agent/mesh-agent/pkg/backends"
	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// written are the slices of each service, as in an API server in which every plan is executed.
type written map[string][]*discoveryv1.EndpointSlice

// follow executes the plan for a service, and returns the contents of its slices, sorted.
func (w written) follow(svc *corev1.Service, g *services.Global) []string {
	held := w[svc.Name]
	for _, c := range endpointslices.Plan(endpointslices.Input{Service: svc, Global: g, Held: held}).All {
		if c.Was != nil {
			held = slices.DeleteFunc(held, func(s *discoveryv1.EndpointSlice) bool { return s.Name == c.Was.Name })
		}
		if c.To != nil {
			held = append(held, c.To)
		}
	}
	w[svc.Name] = held
	return linesOfSlices(held)
}

// linesOfSlices are the endpoints of slices, sorted.
func linesOfSlices(of []*discoveryv1.EndpointSlice) (all []string) {
	for _, s := range of {
		ports := make([]string, 0, len(s.Ports))
		for _, p := range s.Ports {
			ports = append(ports, fmt.Sprintf("%s=%d", *p.Name, *p.Port))
		}
		for _, e := range s.Endpoints {
			all = append(all, endpoint(useOf(e.Conditions), s.Labels[endpointslices.LabelCluster], e.Addresses[0], ports))
		}
	}
	slices.Sort(all)
	return all
}

func useOf(c discoveryv1.EndpointConditions) string {
	switch {
	case *c.Ready:
		return "now"
	case *c.Terminating:
		return "draining"
	}
	return "standby"
}

// service is a Service of the own cluster, as users write it.
func service(name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: "1",
			Annotations: map[string]string{"service.cilium.io/global": "true", endpointslices.AnnotationSync: "true"},
		},
		Spec: corev1.ServiceSpec{IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}},
	}
}

// remote is the part of a choice that slices must have: the backends of remote clusters, for any use.
func remote(c backends.Choice) (all []string) {
	add := func(use string, from []backends.Backend) {
		for _, b := range from {
			if b.Local {
				continue
			}
			ports := make([]string, 0, len(b.Ports))
			for _, p := range b.Ports {
				ports = append(ports, fmt.Sprintf("%s=%d", p.Name, p.Port))
			}
			all = append(all, endpoint(use, b.Cluster, b.IP.String(), ports))
		}
	}
	add("now", c.Now())
	served := false
	for _, g := range c.Groups {
		if served {
			add("standby", g.Backends)
		}
		served = served || len(g.Backends) > 0
		add("draining", g.Draining)
	}
	slices.Sort(all)
	return all
}

func endpoint(use, cluster, address string, ports []string) string {
	slices.Sort(ports)
	return fmt.Sprintf("%s %s %s %s", use, cluster, address, strings.Join(ports, ","))
}
