package publish

import (
	"maps"
	"slices"
	"strings"

	"github.com/cilium/statedb"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// groups knows which names belong to which group.
type groups struct {
	of      map[string]string              // the group of each name that has one
	members map[string]map[string]struct{} // the names in each group that has any
}

func newGroups() groups {
	return groups{make(map[string]string), make(map[string]map[string]struct{})}
}

// set puts a name into a group, empty for none, and returns the one that it was in.
func (g groups) set(name, group string) (before string) {
	before = g.of[name]
	if before == group {
		return before
	}
	delete(g.of, name)
	if delete(g.members[before], name); len(g.members[before]) == 0 {
		delete(g.members, before)
	}
	if group != "" {
		g.of[name] = group
		if g.members[group] == nil {
			g.members[group] = make(map[string]struct{})
		}
		g.members[group][name] = struct{}{}
	}
	return before
}

// members knows which slices belong to which service. The names are "namespace/name".
type members struct {
	cluster *local.Cluster
	slices  groups
}

func newMembers(cluster *local.Cluster) *members { return &members{cluster, newGroups()} }

// serviceOf is the service that a slice belongs to; empty when it has none. A slice of remote backends
// belongs to none: they are the other clusters' to publish, and would go round between clusters (mcs.md C). Neither does
// one for another proxy.
func serviceOf(slice *discoveryv1.EndpointSlice) string {
	service := slice.Labels[wire.LabelServiceName]
	if service == "" || slice.Labels[wire.LabelSliceManagedBy] == wire.MeshSliceManager || local.OfAnotherProxy(slice.Labels) {
		return ""
	}
	return slice.Namespace + "/" + service
}

// take notes a change of a slice. It touches its service, and the one that it belonged to before.
func (m *members) take(_ statedb.ReadTxn, slice *discoveryv1.EndpointSlice, deleted bool, t touch) {
	now := serviceOf(slice)
	if deleted {
		now = ""
	}
	before := m.slices.set(local.Name(slice), now)
	for _, service := range []string{before, now} {
		if service != "" {
			t(service)
		}
	}
}

// of are the slices of a service, by name.
func (m *members) of(txn statedb.ReadTxn, service string) (out []*discoveryv1.EndpointSlice) {
	for _, name := range slices.Sorted(maps.Keys(m.slices.members[service])) {
		if s, found := m.cluster.EndpointSlices.Get(txn, name); found {
			out = append(out, s)
		}
	}
	return out
}

// namespaceOf is the namespace of the object with this name; nil when the namespace is not known.
func namespaceOf(txn statedb.ReadTxn, cluster *local.Cluster, name string) *corev1.Namespace {
	namespace, _, _ := strings.Cut(name, "/")
	one, _ := cluster.Namespaces.Get(txn, namespace)
	return one
}

// inNamespace touches the objects of a namespace that changed.
func inNamespace[T any, P local.Object[T]](objects *local.Objects[T, P]) touches[*corev1.Namespace] {
	return func(txn statedb.ReadTxn, namespace *corev1.Namespace, _ bool, t touch) {
		for one := range objects.InNamespace(txn, namespace.Name) {
			t(local.Name(one))
		}
	}
}
