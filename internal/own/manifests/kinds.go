package manifests

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/store"
)

// kind is a kind of objects that is read.
type kind struct {
	name       string
	group      string   // empty for the core group
	versions   []string // that are understood, the usual one first
	namespaced bool
	decode     func(value []byte) (metav1.Object, error)
	apply      func(docs []document)
}

// kinds are those that are read, with where their objects go.
func kinds(into *local.Cluster) []kind {
	return []kind{
		newKind(into.Services, "Service", "", true, "v1"),
		newKind(into.EndpointSlices, "EndpointSlice", "discovery.k8s.io", true, "v1"),
		newKind(into.Nodes, "Node", "", false, "v1"),
		newKind(into.Pods, "Pod", "", true, "v1"),
		newKind(into.Namespaces, "Namespace", "", false, "v1"),
		newKind(into.ServiceExports, "ServiceExport", "multicluster.x-k8s.io", true, "v1alpha1", "v1beta1", "v1"),
		newKind(into.CiliumNodes, "CiliumNode", "cilium.io", false, "v2"),
		newKind(into.CiliumEndpoints, "CiliumEndpoint", "cilium.io", true, "v2"),
		newKind(into.CiliumEndpointSlices, "CiliumEndpointSlice", "cilium.io", false, "v2alpha1"),
		newKind(into.CiliumIdentities, "CiliumIdentity", "cilium.io", false, "v2"),
	}
}

func newKind[T any, P local.Object[T]](objects *local.Objects[T, P], name, group string, namespaced bool, versions ...string) kind {
	decode := func(value []byte) (metav1.Object, error) {
		o := P(new(T))
		return o, json.Unmarshal(value, o)
	}
	set := store.NewSet[T]()
	// apply makes these the objects of the kind, all at once. Those that are as they were cause nothing.
	apply := func(docs []document) {
		var changes []store.Change[T]
		set.Begin()
		for _, d := range docs {
			decoded := func(string, []byte) (*T, error) { return (*T)(d.object.(P)), nil }
			if ch, changed, _ := set.Upsert([]byte(d.name), d.value, 0, decoded); changed {
				changes = append(changes, ch)
			}
		}
		objects.Apply(slices.AppendSeq(changes, set.Done()))
	}
	return kind{name, group, versions, namespaced, decode, apply}
}

// apiVersion is how manifests name the kind's usual version.
func (k kind) apiVersion() string {
	if k.group == "" {
		return k.versions[0]
	}
	return k.group + "/" + k.versions[0]
}
