package publish

import (
	"github.com/cilium/statedb"
	corev1 "k8s.io/api/core/v1"

	"github.com/mesh-agent/mesh-agent/pkg/local"
)

// endpointTables are the tables that [local.Cluster.Endpoint] looks into; a change touches the names of the pods. also is
// called before with each change, unless it is nil.
func endpointTables(c *local.Cluster, also func(txn statedb.ReadTxn, t touch)) []table {
	if also == nil {
		also = func(statedb.ReadTxn, touch) {}
	}
	before := make(map[string]*local.CiliumEndpointSlice) // by name: pods that have left one are touched as well
	return []table{
		tableOf(c.CiliumEndpoints, func(txn statedb.ReadTxn, o *local.CiliumEndpoint, _ bool, t touch) {
			also(txn, t)
			t(local.Name(o))
		}),
		tableOf(c.CiliumEndpointSlices, func(txn statedb.ReadTxn, s *local.CiliumEndpointSlice, deleted bool, t touch) {
			also(txn, t)
			for _, one := range []*local.CiliumEndpointSlice{before[s.Name], s} {
				for name := range one.Members() {
					t(name)
				}
			}
			if before[s.Name] = s; deleted {
				delete(before, s.Name)
			}
		}),
	}
}

// endpointsInNamespace touches the pods of a namespace of which Cilium says something.
func endpointsInNamespace(c *local.Cluster) touches[*corev1.Namespace] {
	return func(txn statedb.ReadTxn, namespace *corev1.Namespace, _ bool, t touch) {
		for name := range c.EndpointsIn(txn, namespace.Name) {
			t(name)
		}
	}
}
