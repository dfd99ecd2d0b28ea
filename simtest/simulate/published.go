package simulate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/internal/kube/endpointslices"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/model"
)

// described is what a cluster has to publish, by family and the rest of the key: the part of each value that its
// description decides. It is computed from the description alone.
func (c *cluster) described() map[wire.Resource]map[string]string {
	all := make(map[wire.Resource]map[string]string)
	for _, r := range model.Families() {
		all[r] = make(map[string]string)
	}
	s := c.Source
	for n := range s.CiliumNodes.Table().All(s.CiliumNodes.Snapshot()) {
		var addresses []string
		for _, a := range n.Spec.Addresses {
			addresses = append(addresses, a.IP)
		}
		all[wire.Nodes][n.Name] = fmt.Sprint(addresses)
	}
	for n := range s.Nodes.Table().All(s.Nodes.Snapshot()) {
		var addresses []string
		for _, a := range n.Status.Addresses {
			addresses = append(addresses, a.Address)
		}
		all[wire.Nodes][n.Name] = fmt.Sprint(addresses)
	}
	for p := range s.Pods.Table().All(s.Pods.Snapshot()) {
		if isGlobal(c.Cluster, p.Namespace) {
			all[wire.IPs][p.Status.PodIP] = fmt.Sprint(p.Labels["app"][1:], " ", p.Name)
		}
	}
	for e := range s.CiliumEndpoints.Table().All(s.CiliumEndpoints.Snapshot()) {
		if !isGlobal(c.Cluster, e.Namespace) {
			continue
		}
		for _, a := range e.Status.Networking.Addressing {
			all[wire.IPs][a.IPv4] = fmt.Sprint(e.Status.Identity.ID, " ", e.Name)
		}
	}
	for i := range s.CiliumIdentities.Table().All(s.CiliumIdentities.Snapshot()) {
		if !isGlobal(c.Cluster, i.SecurityLabels[labelNamespace]) {
			continue
		}
		all[wire.Identities][i.Name] = i.SecurityLabels["k8s:app"][1:]
	}
	for svc := range s.Services.Table().All(s.Services.Snapshot()) {
		if svc.Annotations[wire.AnnotationGlobal] == "true" && isGlobal(c.Cluster, svc.Namespace) {
			backends, slices := c.backends(local.Name(svc))
			all[wire.Services][local.Name(svc)] = fmt.Sprint(backends)
			for _, name := range slices {
				all[wire.EndpointSlices][name] = fmt.Sprint(backends)
			}
		}
	}
	return all
}

// apps returns the applications of the described pods.
func apps(described map[wire.Resource]map[string]string) map[string]bool {
	all := make(map[string]bool)
	for _, pod := range described[wire.IPs] {
		app, _, _ := strings.Cut(pod, " ")
		all[app] = true
	}
	return all
}

// backends returns the addresses of the backends of a service, sorted, and the names of its slices.
func (c *cluster) backends(service string) (addresses, names []string) {
	s := c.Source.EndpointSlices
	for slice := range s.Table().All(s.Snapshot()) {
		if full(slice.Labels[wire.LabelServiceName]) != service || endpointslices.IsOurs(slice) {
			continue
		}
		names = append(names, local.Name(slice))
		for _, e := range slice.Endpoints {
			addresses = append(addresses, e.Addresses...)
		}
	}
	slices.Sort(addresses)
	return slices.Compact(addresses), names
}

// published is the same part of a value that the kvstore has.
func (c *cluster) published(of *recorded, name string, value []byte) string {
	switch of.r {
	case wire.Nodes:
		n, err := wire.DecodeNode(name, value, of.of)
		if err != nil {
			return err.Error()
		}
		var addresses []string
		for _, a := range n.IPAddresses {
			addresses = append(addresses, a.IP.String())
		}
		return fmt.Sprint(addresses)
	case wire.IPs:
		ip, err := wire.DecodeIP(name, value, of.of)
		if err != nil {
			return err.Error()
		}
		if len(c.members) > 0 {
			return fmt.Sprint(c.allocation.app(ip.Identity), " ", ip.Pod)
		}
		return fmt.Sprint(ip.Identity, " ", ip.Pod)
	case wire.Identities:
		return appOf(string(value))
	case wire.Services:
		s, err := wire.DecodeService(name, value, of.of)
		if err != nil {
			return err.Error()
		}
		var addresses []string
		for ip := range s.Backends {
			addresses = append(addresses, ip)
		}
		slices.Sort(addresses)
		return fmt.Sprint(addresses)
	case wire.EndpointSlices:
		s, err := wire.DecodeEndpointSlice(name, value, of.of)
		if err != nil {
			return err.Error()
		}
		var addresses []string
		for _, e := range s.Endpoints {
			addresses = append(addresses, e.Addresses...)
		}
		slices.Sort(addresses)
		return fmt.Sprint(slices.Compact(addresses))
	}
	return ""
}

// unpublished returns how the kvstore of the cluster differs from its description; empty when it does not. At rest, all identities
// that are not used have been collected.
func (c *cluster) unpublished(rest bool) string {
	want := c.described()
	for _, r := range model.Families() {
		of := c.history.of(r, c.Own.Name, false)
		if r == wire.Identities && len(c.members) > 0 {
			if wrong := c.allocation.unallocated(apps(want), rest); wrong != "" {
				return wrong
			}
			continue
		}
		now := c.history.now(of)
		for name, text := range want[r] {
			value, is := now[name]
			if !is {
				return fmt.Sprintf("%s%s is not published", of.prefix, name)
			}
			if got := c.published(of, name, value); got != text {
				return fmt.Sprintf("%s%s is published with %s, not with %s", of.prefix, name, got, text)
			}
		}
		for name := range now {
			if _, is := want[r][name]; !is {
				return fmt.Sprintf("%s%s is published, and nothing is described that it could be of", of.prefix, name)
			}
		}
	}
	return ""
}
