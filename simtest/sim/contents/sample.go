package contents

import (
	"net/netip"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Sample names one object of each kind, for examples of lookups. Fields are zero when the cluster has no such object.
type Sample struct {
	Pod      netip.Addr
	PodName  string // namespace/name
	Node     netip.Addr
	NodeName string
	Service  string // namespace/name of a service that every cluster has
}

// Sample picks objects that changes do not affect.
func (m *Model) Sample() Sample {
	var s Sample
	if len(m.nodes) > 0 {
		s.Node, s.NodeName = m.plan.nodeIP(0), m.nodeName(0)
	}
	if len(m.services) > 0 { // the first one exists in all clusters
		s.Service = workloadNamespace(0) + "/" + serviceName(m.c, 0, 0)
	}
	if len(m.pods) > 0 {
		s.Pod = m.podIP(0)
		s.PodName = workloadNamespace(int(m.pods[0].workload)) + "/" + m.podName(0)
	}
	return s
}

// Claim returns the entry that gives the address to a pod of this cluster. That is possible only with a node and an
// identity for the pod.
func (m *Model) Claim(addr netip.Addr) (claim Op, possible bool) {
	if len(m.nodes) == 0 || len(m.workloads) == 0 {
		return Op{}, false
	}
	pair := wire.NewHostPair(addr)
	pair.HostIP = m.plan.nodeIP(0).AsSlice()
	pair.Identity = m.workloads[0].identity
	pair.Namespace, pair.Pod = workloadNamespace(0), "claimed-by-"+m.c.Name
	return Op{Key: pair.Key(), Value: pair.Encode()}, true
}
