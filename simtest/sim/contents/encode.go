package contents

import (
	"encoding/binary"
	"encoding/hex"
	"iter"
	"net/netip"
	"strconv"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Op is one key to write or to delete.
type Op struct {
	Key   string
	Value []byte // nil for a deletion
	Slot  int32  // the slot of the lease, for a write, or NoLease
}

// Malformed is no valid value of any kind: no JSON, no compressed slice, and as the labels of an identity without a
// cluster.
const Malformed = "malformed by mesh-sim"

// NoLease is the slot of a key that stays when its writer ends.
const NoLease = -1

// Deletes reports whether the key is deleted.
func (o Op) Deletes() bool { return o.Value == nil }

// All are the keys of the cluster's state.
func (m *Model) All() iter.Seq[Op] {
	return func(yield func(Op) bool) {
		for i := range m.nodes {
			if !yield(m.nodeOp(i)) {
				return
			}
		}
		for s := range m.services {
			for _, o := range m.serviceOps(int32(s), true) {
				if !yield(o) {
					return
				}
			}
		}
		for w := range m.workloads {
			if !yield(m.identityOp(w)) {
				return
			}
		}
		for _, s := range m.spares {
			if !yield(m.spareOp(s)) {
				return
			}
		}
		for i := range m.podsByNode() {
			if !yield(m.podOp(i)) {
				return
			}
		}
	}
}

// podsByNode goes from node to node, as nodeOf placed the pods: neighbouring keys are cheaper to write.
func (m *Model) podsByNode() iter.Seq[int32] {
	return func(yield func(int32) bool) {
		count := len(m.nodes)
		for n := range m.nodes {
			for k := 0; k*count < len(m.pods); k++ {
				i := k*count + (n-k%count+count)%count
				if i < len(m.pods) && m.pods[i].workload != gone && !yield(int32(i)) {
					return
				}
			}
		}
	}
}

func (m *Model) nodeName(i int) string { return m.c.Name + "-worker-" + strconv.Itoa(i+1) }

func (m *Model) zone(i int) string { return pick(zones(), i) }

func (m *Model) nodeOp(i int) Op {
	router, health, ingress := m.plan.at(i, offsetRouter), m.plan.at(i, offsetHealth), m.plan.at(i, offsetIngress)
	cidr := wire.NewCIDR(m.plan.podCIDR(i))
	n := wire.Node{
		Name: m.nodeName(i), Cluster: m.c.Name, ClusterID: m.id,
		IPAddresses: []wire.NodeAddress{
			{Type: wire.AddressInternalIP, IP: m.plan.nodeIP(i).AsSlice()},
			{Type: wire.AddressCiliumInternalIP, IP: router.AsSlice()},
		},
		Source: wire.SourceCustomResource.String(),
		Labels: m.nodeLabels(i),
		BootID: bootID(m.hash("boot", uint64(i)), m.hash("boot-low", uint64(i))),
	}
	if router.Is4() {
		n.IPv4AllocCIDR, n.IPv4HealthIP, n.IPv4IngressIP = &cidr, health.AsSlice(), ingress.AsSlice()
	} else {
		n.IPv6AllocCIDR, n.IPv6HealthIP, n.IPv6IngressIP = &cidr, health.AsSlice(), ingress.AsSlice()
	}
	return Op{Key: n.Key(), Value: n.Encode(), Slot: m.nodes[i].slot}
}

func (m *Model) nodeLabels(i int) map[string]string {
	labels := map[string]string{
		"kubernetes.io/arch":               "amd64",
		"kubernetes.io/os":                 "linux",
		"kubernetes.io/hostname":           m.nodeName(i),
		"node.kubernetes.io/instance-type": pick(instanceTypes(), int(m.hash("type", uint64(i))%4)),
		"topology.kubernetes.io/region":    "region-" + strconv.FormatUint(uint64(m.c.ID), 10),
		"topology.kubernetes.io/zone":      m.zone(i),
	}
	if m.nodes[i].cordoned {
		labels["node.kubernetes.io/exclude-from-external-load-balancers"] = "true"
	}
	return labels
}

func (m *Model) identityOp(w int) Op {
	id := wire.Identity{ID: m.workloads[w].identity, Labels: m.labels(workloadNamespace(w), workloadApp(w))}
	return Op{Key: id.Key(), Value: id.Encode(), Slot: m.workloads[w].slot}
}

func (m *Model) spareOp(s spare) Op {
	id := wire.Identity{
		ID:     s.identity,
		Labels: m.labels(workloadNamespace(s.serial), "job-"+strconv.Itoa(s.serial+1)),
	}
	return Op{Key: id.Key(), Value: id.Encode(), Slot: s.slot}
}

// labels are those of a pod's identity.
func (m *Model) labels(namespace, app string) wire.Labels {
	k8s := func(key, value string) wire.Label {
		return wire.Label{Source: wire.LabelSourceKubernetes, Key: key, Value: value}
	}
	return wire.Labels{
		k8s("app", app),
		k8s("io.cilium.k8s.namespace.labels.kubernetes.io/metadata.name", namespace),
		k8s(wire.LabelCluster, m.c.Name),
		k8s("io.cilium.k8s.policy.serviceaccount", app),
		k8s("io.kubernetes.pod.namespace", namespace),
	}
}

func (m *Model) podIP(i int32) netip.Addr {
	return m.plan.at(int(m.pods[i].node), m.pods[i].offset)
}

func (m *Model) podName(i int32) string {
	p := m.pods[i]
	return workloadApp(int(p.workload)) + "-" + suffix(m.hash("set", uint64(p.workload)), 8) + "-" + suffix(uint64(p.serial), 5)
}

func (m *Model) podKey(i int32) string {
	pair := wire.NewHostPair(m.podIP(i))
	return pair.Key()
}

func (m *Model) podOp(i int32) Op {
	p := m.pods[i]
	w := int(p.workload)
	pair := wire.NewHostPair(m.podIP(i))
	pair.HostIP = m.plan.nodeIP(int(p.node)).AsSlice()
	pair.Identity = m.workloads[w].identity
	pair.Namespace = workloadNamespace(w)
	pair.Pod = m.podName(i)
	pair.ServiceAccount = workloadApp(w)
	if w%8 == 0 { // some pods have named ports
		for _, pt := range workloadPorts(w) {
			if pt.name != "" {
				pair.NamedPorts = append(pair.NamedPorts, wire.NamedPort{Name: pt.name, Port: pt.container, Protocol: pt.protocol})
			}
		}
	}
	return Op{Key: pair.Key(), Value: pair.Encode(), Slot: p.slot}
}

// serviceOps writes service s with its slices and, when complete, its export,
// which churn does not change.
func (m *Model) serviceOps(s int32, complete bool) []Op {
	sv := &m.services[s]
	ops := make([]Op, 0, 3)
	if !m.c.SlicesOnly {
		ops = append(ops, m.legacyOp(int(s), sv))
	}
	for i, slot := range sv.sliceSlots {
		ops = append(ops, m.sliceOp(int(s), sv, i, slot))
	}
	if complete && m.c.ServiceExports {
		ops = append(ops, m.exportOp(int(s), sv))
	}
	return ops
}

// headless reports whether a service has no cluster IP.
func headless(s int) bool { return s%10 == 9 }

func (m *Model) legacyOp(s int, sv *service) Op {
	w := int(sv.workload)
	ports := workloadPorts(w)
	backends := m.workloads[w].backends
	out := wire.Service{
		Cluster: m.c.Name, ClusterID: m.id,
		Namespace: workloadNamespace(w), Name: serviceName(m.c, s, w),
		Frontends: map[string]wire.Ports{},
		Backends:  make(map[string]wire.Ports, len(backends)),
		Zones:     make(map[string]wire.Zone, len(backends)),
		Labels:    map[string]string{"app": workloadApp(w)}, Selector: map[string]string{"app": workloadApp(w)},
		IncludeExternal: true, Shared: true,
	}
	if headless(s) {
		out.Labels[wire.LabelHeadless] = ""
		out.Hostnames = make(map[string]string, len(backends))
	} else {
		out.Frontends[frontendIP(s).String()] = l4(ports, func(p port) uint16 { return p.service })
	}
	targets := l4(ports, func(p port) uint16 { return p.container })
	for _, b := range backends {
		ip := m.podIP(b).String()
		out.Backends[ip] = targets
		out.Zones[ip] = wire.Zone{Zone: m.zone(int(m.pods[b].node)), ForZones: []wire.ForZone{}}
		if headless(s) {
			out.Hostnames[ip] = m.podName(b)
		}
	}
	return Op{Key: out.Key(), Value: out.Encode(), Slot: sv.slot}
}

func l4(ports []port, number func(port) uint16) wire.Ports {
	out := make(wire.Ports, len(ports))
	for _, p := range ports {
		out[p.name] = &wire.L4{Protocol: p.protocol, Port: number(p)}
	}
	return out
}

func (m *Model) sliceName(s, i int) string {
	name := serviceName(m.c, s, int(m.services[s].workload))
	return name + "-" + suffix(m.hash("slice", uint64(s)<<16|uint64(i)), 5)
}

func (m *Model) sliceKey(s, i int) string {
	slice := wire.EndpointSlice{Cluster: m.c.Name, Namespace: workloadNamespace(int(m.services[s].workload)), Name: m.sliceName(s, i)}
	return slice.Key()
}

func (m *Model) sliceOp(s int, sv *service, i int, slot int32) Op {
	w := int(sv.workload)
	out := wire.EndpointSlice{
		Cluster: m.c.Name, ClusterID: m.id,
		Namespace: workloadNamespace(w), Name: m.sliceName(s, i),
		Labels: map[string]string{
			"app":                                    workloadApp(w),
			wire.LabelServiceName:                    serviceName(m.c, s, w),
			"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
		},
		AddressType: wire.AddressTypeIPv4,
	}
	if m.c.Nodes > 0 && m.plan.pods.Addr().Is6() {
		out.AddressType = wire.AddressTypeIPv6
	}
	if headless(s) {
		out.Labels[wire.LabelHeadless] = ""
	}
	for _, p := range workloadPorts(w) {
		out.Ports = append(out.Ports, wire.EndpointPort{Name: &p.name, Protocol: &p.protocol, Port: new(int32(p.container))})
	}
	backends := m.workloads[w].backends
	for _, b := range backends[min(i*endpointsPerSlice, len(backends)):min((i+1)*endpointsPerSlice, len(backends))] {
		out.Endpoints = append(out.Endpoints, m.endpoint(b, headless(s)))
	}
	return Op{Key: out.Key(), Value: m.slices.Encode(&out), Slot: slot}
}

func (m *Model) endpoint(i int32, withHostname bool) wire.Endpoint {
	n := int(m.pods[i].node)
	e := wire.Endpoint{
		Addresses:  []string{m.podIP(i).String()},
		Conditions: wire.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
		NodeName:   new(m.nodeName(n)), Zone: new(m.zone(n)),
	}
	if withHostname {
		e.Hostname = new(m.podName(i))
	}
	return e
}

func (m *Model) exportOp(s int, sv *service) Op {
	w := int(sv.workload)
	out := wire.ServiceExport{
		Cluster: m.c.Name, Namespace: workloadNamespace(w), Name: serviceName(m.c, s, w),
		ExportCreationTimestamp: wire.ExportTime{
			Time: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC).Add(time.Duration(m.hash("export", uint64(s))%1_000_000) * time.Second),
		},
		Type:            wire.ServiceExportClusterSetIP,
		SessionAffinity: wire.SessionAffinityNone,
		Ports:           []wire.ServiceExportPort{},
	}
	if headless(s) {
		out.Type = wire.ServiceExportHeadless
	}
	for _, p := range workloadPorts(w) {
		out.Ports = append(out.Ports, wire.ServiceExportPort{Name: p.name, Protocol: p.protocol, Port: int32(p.service)})
	}
	return Op{Key: out.Key(), Value: out.Encode(), Slot: sv.exportSlot}
}

// hash derives a number from the seed, the cluster and the purpose: a property of an object that does not change while
// other objects do.
func (m *Model) hash(what string, n uint64) uint64 {
	h := m.c.Seed ^ uint64(m.c.ID)<<40 ^ n*0x9e3779b97f4a7c15
	for _, b := range []byte(what) {
		h = (h ^ uint64(b)) * 0x100000001b3
	}
	h ^= h >> 31
	h *= 0xbf58476d1ce4e5b9
	return h ^ h>>29
}

// bootID writes two numbers as a UUID.
func bootID(high, low uint64) string {
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:8], high)
	binary.BigEndian.PutUint64(raw[8:], low)
	raw[6], raw[8] = raw[6]&0x0f|0x40, raw[8]&0x3f|0x80
	t := hex.EncodeToString(raw[:])
	return t[:8] + "-" + t[8:12] + "-" + t[12:16] + "-" + t[16:20] + "-" + t[20:]
}
