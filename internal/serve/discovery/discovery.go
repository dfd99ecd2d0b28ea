// Package discovery makes Prometheus targets from the view, in the format of the HTTP service discovery of Prometheus
// (xds.md B). All functions are pure functions of one snapshot, and return the targets in the order of the objects.
//
// Labels begin with __meta_mesh_. A target of a cluster that is not known to be up to date stays in the list, with
// stale="true". All data of a cluster is handled as text: names of labels consist of letters, digits and "_", values
// are valid UTF-8.
package discovery

import (
	"cmp"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/backends"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Group is one target with its labels.
type Group struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// Known has the settings of a list, and the state of the clusters.
type Known struct {
	Stale func(cluster string) bool // whether the data of a cluster may be out of date
	Zone  string                    // the DNS zone in which services have names
	Asker backends.Asker            // the place of the client
	// Pod returns the pod of an address, so that a pod with two addresses is one target; nil: each address is one.
	Pod backends.Pods
	// Name returns the name that clients use for a service, empty when that name stands for another service; nil: all
	// services have their own names.
	Name func(*services.Global) string
}

// Nodes returns a target for each node: a port at the address that the other nodes use for it. Nodes without an
// address are left out.
func Nodes(all iter.Seq[*nodes.Node], port uint16, known Known) iter.Seq[Group] {
	return func(yield func(Group) bool) {
		for n := range all {
			ip := n.HostIP(false)
			if !ip.IsValid() {
				continue
			}
			l := known.labels(n.Cluster, n.ClusterID)
			l.set("node_name", n.Name)
			l.set("address_family", family(ip))
			for _, a := range n.Addresses {
				if name := "node_address_" + strings.ToLower(a.Type); a.Type != wire.AddressCiliumInternalIP && l[prefix+sanitized(name)] == "" {
					l.set(name, a.IP.String())
				}
			}
			l.all("node_label_", n.Labels)
			if !yield(group(ip, port, l)) {
				return
			}
		}
	}
}

// Endpoints returns a target for each port of each backend that connections go to, or would go to when others fail.
// The label group is 0 for the best group. The label draining is "true" for backends that terminate.
func Endpoints(all iter.Seq[*services.Global], known Known) iter.Seq[Group] {
	return func(yield func(Group) bool) {
		for g := range all {
			name := cmp.Or(known.name(g), g.Name)
			for i, of := range backends.Choose(g, backends.Port{}, known.Asker).ByPod(g.Namespace, known.Pod).Groups {
				if !known.endpoints(g, name, i, of.Backends, false, yield) || !known.endpoints(g, name, i, of.Draining, true, yield) {
					return
				}
			}
		}
	}
}

func (k Known) endpoints(g *services.Global, name string, of int, all []backends.Backend, draining bool, yield func(Group) bool) bool {
	for i := range all {
		b := &all[i]
		for _, p := range b.Ports {
			part := g.Part(b.Cluster)
			l := k.labels(b.Cluster, part.ClusterID)
			l.service(g, name)
			l.port(p)
			l.set("group", strconv.Itoa(of))
			l.set("draining", strconv.FormatBool(draining))
			l.set("local", strconv.FormatBool(b.Local))
			l.set("address_family", family(b.IP))
			if b.Other.IsValid() {
				l.set("additional_address", netip.AddrPortFrom(b.Other, p.Port).String())
			}
			l.set("endpoint_hostname", b.Hostname)
			l.set("endpoint_zone", b.Zone)
			l.set("endpoint_node_name", b.Node)
			l.all("service_label_", part.Labels)
			if !yield(group(b.IP, p.Port, l)) {
				return false
			}
		}
	}
	return true
}

// Services returns a target for each port of each service, with the DNS name of the service. A service without
// backends has no targets.
func Services(all iter.Seq[*services.Global], known Known) iter.Seq[Group] {
	return func(yield func(Group) bool) {
		for g := range all {
			name := known.name(g)
			if name == "" {
				continue
			}
			var ports []services.Port
			var clusters []string
			stale := false
			for _, of := range backends.Choose(g, backends.Port{}, known.Asker).Groups {
				for _, b := range slices.Concat(of.Backends, of.Draining) {
					ports = append(ports, b.Ports...)
					clusters = append(clusters, b.Cluster)
					stale = stale || known.Stale(b.Cluster)
				}
			}
			slices.SortFunc(ports, func(a, b services.Port) int {
				return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Name, b.Name))
			})
			slices.Sort(clusters)
			for _, p := range slices.Compact(ports) {
				l := make(labels)
				l.set("stale", strconv.FormatBool(stale))
				l.set("clusters", ","+strings.Join(slices.Compact(slices.Clone(clusters)), ",")+",")
				l.service(g, name)
				l.port(p)
				target := name + "." + g.Namespace + ".svc." + known.Zone + ":" + strconv.Itoa(int(p.Port))
				if !yield(Group{[]string{target}, l}) {
					return
				}
			}
		}
	}
}

func group(ip netip.Addr, port uint16, l labels) Group {
	return Group{[]string{netip.AddrPortFrom(ip, port).String()}, l}
}

// family returns the name that Kubernetes uses for the family of an address.
func family(ip netip.Addr) string {
	if ip.Is4() {
		return services.IPv4
	}
	return services.IPv6
}

const prefix = "__meta_mesh_"

// LabelCluster is the label with the cluster of a target.
const LabelCluster = prefix + "cluster"

// labels are the labels of a target. An empty value is the same as no label.
type labels map[string]string

func (k Known) labels(cluster string, id uint32) labels {
	l := make(labels, 16)
	l.set("cluster", cluster)
	if id != 0 {
		l.set("cluster_id", strconv.FormatUint(uint64(id), 10))
	}
	l.set("stale", strconv.FormatBool(k.Stale(cluster)))
	return l
}

func (l labels) set(name, value string) {
	if value != "" {
		l[prefix+sanitized(name)] = strings.ToValidUTF8(value, "\uFFFD")
	}
}

func (k Known) name(g *services.Global) string {
	if k.Name == nil {
		return g.Name
	}
	return k.Name(g)
}

func (l labels) service(g *services.Global, name string) {
	l.set("namespace", g.Namespace)
	l.set("service_name", name)
	l.set("service_affinity", g.Affinity())
}

func (l labels) port(p services.Port) {
	l.set("port_name", p.Name)
	l.set("port_protocol", p.Protocol)
	l.set("port_number", strconv.Itoa(int(p.Port)))
}

// all sets the labels of an object. If two names become the same, the first one in their order is used.
func (l labels) all(kind string, of map[string]string) {
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(of))) {
		l.set(kind+name, of[name])
	}
}

// sanitized returns a name that all versions of Prometheus accept.
func sanitized(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, name)
}
