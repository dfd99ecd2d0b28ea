package manifests

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
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
}

// kinds are those that are read.
func kinds() []kind {
	v1, v2 := []string{"v1"}, []string{"v2"}
	return []kind{
		{"Service", "", v1, true, decodeAs[corev1.Service]},
		{"EndpointSlice", "discovery.k8s.io", v1, true, decodeAs[discoveryv1.EndpointSlice]},
		{"Node", "", v1, false, decodeAs[corev1.Node]},
		{"Pod", "", v1, true, decodeAs[corev1.Pod]},
		{"Namespace", "", v1, false, decodeAs[corev1.Namespace]},
		{"ServiceExport", "multicluster.x-k8s.io", []string{"v1alpha1", "v1beta1", "v1"}, true, decodeAs[local.ServiceExport]},
		{"CiliumNode", "cilium.io", v2, false, decodeAs[local.CiliumNode]},
		{"CiliumEndpoint", "cilium.io", v2, true, decodeAs[local.CiliumEndpoint]},
		{"CiliumIdentity", "cilium.io", v2, false, decodeAs[local.CiliumIdentity]},
	}
}

// apiVersion is how manifests name the kind's usual version.
func (k kind) apiVersion() string {
	if k.group == "" {
		return k.versions[0]
	}
	return k.group + "/" + k.versions[0]
}

func decodeAs[T any, P interface {
	*T
	metav1.Object
}](value []byte) (metav1.Object, error) {
	o := new(T)
	err := json.Unmarshal(value, o)
	return P(o), err
}

// sink takes the objects of one kind.
type sink interface {
	apply(docs []document)
	listed()
}

// sinks are those of the kinds, by their names.
func sinks(into *local.Cluster) map[string]sink {
	return map[string]sink{
		"Service":        newTable(into.Services),
		"EndpointSlice":  newTable(into.EndpointSlices),
		"Node":           newTable(into.Nodes),
		"Pod":            newTable(into.Pods),
		"Namespace":      newTable(into.Namespaces),
		"ServiceExport":  newTable(into.ServiceExports),
		"CiliumNode":     newTable(into.CiliumNodes),
		"CiliumEndpoint": newTable(into.CiliumEndpoints),
		"CiliumIdentity": newTable(into.CiliumIdentities),
	}
}

// table is the sink that finds out what changed and fills a table.
type table[T any, P interface {
	*T
	metav1.Object
}] struct {
	set     *store.Set[T]
	objects *local.Objects[T, P]
}

func newTable[T any, P interface {
	*T
	metav1.Object
}](objects *local.Objects[T, P]) sink {
	return &table[T, P]{store.NewSet[T](), objects}
}

// apply makes these the objects of the kind, all at once. Those that are as they
// were cause nothing.
func (t *table[T, P]) apply(docs []document) {
	var changes []store.Change[T]
	t.set.Begin()
	for _, d := range docs {
		decoded := func(string, []byte) (*T, error) { return (*T)(d.object.(P)), nil }
		ch, changed, _ := t.set.Upsert([]byte(d.name), d.value, 0, decoded)
		if changed {
			changes = append(changes, ch)
		}
	}
	t.objects.Apply(slices.AppendSeq(changes, t.set.Done()))
}

func (t *table[T, P]) listed() { t.objects.Listed() }
