package local

import (
	"iter"

	"github.com/cilium/statedb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mesh-agent/mesh-agent/internal/base/tables"
)

// CiliumEndpointSlice is the object of Cilium's operator about many pods of one namespace (cilium.io/v2alpha1). A
// cluster with slices need not have a [CiliumEndpoint] for each pod.
type CiliumEndpointSlice struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Of                string        `json:"namespace"` // of the pods; the slice itself has none
	Endpoints         []SliceMember `json:"endpoints"`
}

// SliceMember is one pod of a [CiliumEndpointSlice].
type SliceMember struct {
	Name     string `json:"name"`
	Identity int64  `json:"id"` // 0 is none
	PodUID   string `json:"pod-uid"`
	EndpointProperties
}

// Members iterates over the pods of a slice by their [Name]; nil has none.
func (s *CiliumEndpointSlice) Members() iter.Seq2[string, *SliceMember] {
	return func(yield func(string, *SliceMember) bool) {
		if s == nil {
			return
		}
		for i := range s.Endpoints {
			if !yield(s.Of+"/"+s.Endpoints[i].Name, &s.Endpoints[i]) {
				return
			}
		}
	}
}

// endpoint returns the part of the slice about a pod, as an object of its own.
func (s *CiliumEndpointSlice) endpoint(m *SliceMember) *CiliumEndpoint {
	e := &CiliumEndpoint{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Of, Name: m.Name, UID: types.UID(m.PodUID), CreationTimestamp: s.CreationTimestamp},
		Status:     CiliumEndpointStatus{EndpointProperties: m.EndpointProperties},
	}
	if m.Identity != 0 {
		e.Status.Identity = &EndpointIdentity{ID: m.Identity}
	}
	return e
}

var (
	// byMember finds the slices that a pod is in, byNamespace those of a namespace.
	byMember = tables.TextsIndex("member", func(s *CiliumEndpointSlice) iter.Seq[string] {
		return func(yield func(string) bool) {
			for name := range s.Members() {
				if !yield(name) {
					return
				}
			}
		}
	})
	byNamespace = tables.TextIndex("namespace", false, func(s *CiliumEndpointSlice) string { return s.Of })
)

// Endpoint returns the CiliumEndpoint of the pod with this [Name]. If there is none, it returns the part about the pod
// of the slice that has it. If several slices have the pod, since it may move to another one, the latest counts.
func (c *Cluster) Endpoint(txn statedb.ReadTxn, name string) (*CiliumEndpoint, bool) {
	if own, found := c.CiliumEndpoints.Get(txn, name); found {
		return own, true
	}
	var found *CiliumEndpoint
	var latest statedb.Revision
	for s, revision := range c.CiliumEndpointSlices.table.List(txn, byMember.Query(name)) {
		if found != nil && revision < latest {
			continue
		}
		for member, m := range s.Members() {
			if member == name {
				found, latest = s.endpoint(m), revision
			}
		}
	}
	return found, found != nil
}

// EndpointsIn iterates over the names of the pods of a namespace that [Cluster.Endpoint] finds; some come several times.
func (c *Cluster) EndpointsIn(txn statedb.ReadTxn, namespace string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for one := range c.CiliumEndpoints.InNamespace(txn, namespace) {
			if !yield(Name(one)) {
				return
			}
		}
		for s := range c.CiliumEndpointSlices.table.List(txn, byNamespace.Query(namespace)) {
			for name := range s.Members() {
				if !yield(name) {
					return
				}
			}
		}
	}
}
