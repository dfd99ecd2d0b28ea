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

// members knows which slices belong to which service. The names are
// "namespace/name".
type members struct {
	cluster *local.Cluster
	service map[string]string              // of each slice that has one
	slices  map[string]map[string]struct{} // of each service that has any
}

func newMembers(cluster *local.Cluster) *members {
	return &members{cluster, make(map[string]string), make(map[string]map[string]struct{})}
}

// serviceOf is the service that a slice belongs to; empty when it has none.
func serviceOf(slice *discoveryv1.EndpointSlice) string {
	service := slice.Labels[wire.LabelServiceName]
	if service == "" {
		return ""
	}
	return slice.Namespace + "/" + service
}

// take notes a change of a slice. It touches its service, and the one that it
// belonged to before.
func (m *members) take(slice *discoveryv1.EndpointSlice, deleted bool, t touch) {
	name, now := local.Name(slice), serviceOf(slice)
	if deleted {
		now = ""
	}
	before := m.service[name]
	if before != "" && before != now {
		delete(m.slices[before], name)
		if len(m.slices[before]) == 0 {
			delete(m.slices, before)
		}
		delete(m.service, name)
		t(before)
	}
	if now != "" {
		if m.slices[now] == nil {
			m.slices[now] = make(map[string]struct{})
		}
		m.slices[now][name] = struct{}{}
		m.service[name] = now
		t(now)
	}
}

// of are the slices of a service, by name.
func (m *members) of(txn statedb.ReadTxn, service string) (out []*discoveryv1.EndpointSlice) {
	for _, name := range slices.Sorted(maps.Keys(m.slices[service])) {
		if s, found := m.cluster.EndpointSlices.Get(txn, name); found {
			out = append(out, s)
		}
	}
	return out
}

// namespaceOf is the namespace of what has this name; nil when nothing is known
// of it.
func namespaceOf(txn statedb.ReadTxn, cluster *local.Cluster, name string) *corev1.Namespace {
	namespace, _, _ := strings.Cut(name, "/")
	one, _ := cluster.Namespaces.Get(txn, namespace)
	return one
}

// inNamespace touches all services of a namespace that changed.
func inNamespace(cluster *local.Cluster) func(statedb.ReadTxn, *corev1.Namespace, bool, touch) {
	return func(txn statedb.ReadTxn, namespace *corev1.Namespace, _ bool, t touch) {
		for svc := range cluster.Services.InNamespace(txn, namespace.Name) {
			t(local.Name(svc))
		}
	}
}
