package contents

import (
	"cmp"
	"hash/fnv"
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// endpointsPerSlice is the maximum number of endpoints that Kubernetes puts into a slice.
const endpointsPerSlice = 100

// Model is the contents of one cluster and their changes: a pure state machine, whose results are operations for the
// kvstore.
type Model struct {
	c      Cluster
	id     uint32 // the present ID of the cluster; names and addresses stay those of c.ID
	plan   addressPlan
	layout wire.Layout
	rng    *rand.Rand
	slices *wire.SliceEncoder
	// Slots are the slots on leases, also for keys that are not in the model.
	Slots Slots

	nodes     []node
	workloads []workload
	services  []service
	spares    []spare // identities without pods, which are added and removed
	spareSeen int     // number of spares so far

	pods     []pod
	freePods []int32 // indexes of pods that are gone
	live     int     // pods that are not gone
	serial   uint32  // of the latest pod
	missing  []int32 // workloads whose pods were removed and will be added again
}

// node is one node. Its index decides name and addresses.
type node struct {
	slot       int32
	cordoned   bool     // toggled by churn, shows as a label
	nextOffset uint32   // first offset of the pod range never used
	offsets    []uint32 // offsets that were used and are free again
	pods       uint32   // live pods
}

// workload is an application with its identity.
type workload struct {
	slot     int32
	identity uint32
	services []int32
	backends []int32 // pods that the services select, in no order
}

// service is one service of a workload, with a lease slot for each of its keys.
type service struct {
	workload   int32
	slot       int32
	exportSlot int32
	sliceSlots []int32 // one for each slice that is written
}

// spare is an identity without a pod.
type spare struct {
	slot     int32
	identity uint32
	serial   int
}

// pod is one pod, and one IP entry. There may be millions of them.
type pod struct {
	node     int32
	offset   uint32 // in the node's pod range
	workload int32  // gone when negative
	serial   uint32 // makes the name
	slot     int32
	serves   bool // is a backend of its workload's services
}

const gone = -1

// New makes the contents of c, which must be valid.
func New(c Cluster) (*Model, error) {
	layout, err := wire.NewLayout(c.MaxConnectedClusters)
	if err != nil {
		return nil, err
	}
	m := &Model{c: c, id: c.ID, layout: layout, slices: wire.NewSliceEncoder()}
	m.Slots.limit = cmp.Or(c.KeysPerLease, DefaultKeysPerLease)
	if c.Nodes > 0 {
		if m.plan, err = planAddresses(c); err != nil {
			return nil, err
		}
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(c.Name))
	m.rng = rand.New(rand.NewPCG(c.Seed, h.Sum64()))
	m.makeNodes()
	m.makeWorkloads()
	m.makePods()
	m.makeServices()
	return m, nil
}

// Close frees the encoder.
func (m *Model) Close() { m.slices.Close() }

func (m *Model) makeNodes() {
	m.nodes = make([]node, m.c.Nodes)
	for i := range m.nodes {
		m.nodes[i] = node{slot: m.Slots.Take(), nextOffset: reservedAddresses}
	}
}

func (m *Model) makeWorkloads() {
	m.workloads = make([]workload, m.c.Identities)
	for w := range m.workloads {
		m.workloads[w] = workload{slot: m.Slots.Take(), identity: m.identityNumber(w)}
	}
	for s := range m.c.Services {
		w := &m.workloads[s%m.c.Identities]
		w.services = append(w.services, int32(s))
	}
}

// identityNumber is the n-th identity that the cluster allocates: scattered over
// its range, without repetition for as long as the range lasts.
func (m *Model) identityNumber(n int) uint32 {
	first, last := m.layout.Range(m.id)
	size := uint64(last - first + 1) // a power of two, so that any odd stride visits all
	start := m.c.Seed*7919 + uint64(m.id)
	return first + uint32((start+uint64(n)*10_007)%size)
}

// Renumber gives the cluster another ID, and so other identities, as these are in the cluster's range. Names and
// addresses stay.
func (m *Model) Renumber(id uint32) {
	m.id = id
	for w := range m.workloads {
		m.workloads[w].identity = m.identityNumber(w)
	}
	for i := range m.spares {
		m.spares[i].identity = m.identityNumber(m.spares[i].serial)
	}
}

// HasPod reports whether a pod has the address.
func (m *Model) HasPod(addr netip.Addr) bool {
	for i := range m.pods {
		if m.pods[i].workload != gone && m.podIP(int32(i)) == addr {
			return true
		}
	}
	return false
}

// makePods first gives every service its backends, then the other workloads the remaining pods.
func (m *Model) makePods() {
	m.pods = make([]pod, 0, m.c.Addresses)
	served := min(m.c.Services, m.c.Identities)
	for i := range m.c.Addresses {
		w, serves := 0, false
		switch rest := i - served*m.c.Backends; {
		case rest < 0:
			w, serves = i%served, true
		case served < m.c.Identities:
			w = served + rest%(m.c.Identities-served)
		default:
			w = rest % m.c.Identities
		}
		m.place(int32(w), int32(m.nodeOf(i)), serves)
	}
}

// nodeOf is the node of the i-th pod: pods are spread evenly, and the backends of a service are on different nodes.
func (m *Model) nodeOf(i int) int { return (i + i/m.c.Nodes) % m.c.Nodes }

func (m *Model) makeServices() {
	m.services = make([]service, m.c.Services)
	for s := range m.services {
		sv := &m.services[s]
		sv.workload = int32(s % m.c.Identities)
		sv.slot = m.Slots.Take()
		if m.c.ServiceExports {
			sv.exportSlot = m.Slots.Take()
		}
		for range m.sliceCount(sv) {
			sv.sliceSlots = append(sv.sliceSlots, m.Slots.Take())
		}
	}
}

// sliceCount is the number of slices of the service: one even without backends.
func (m *Model) sliceCount(s *service) int {
	if !m.c.EndpointSlices {
		return 0
	}
	n := len(m.workloads[s.workload].backends)
	return max(1, (n+endpointsPerSlice-1)/endpointsPerSlice)
}

// place adds a pod of workload w to node n, which must have room, and returns its index.
func (m *Model) place(w, n int32, serves bool) int32 {
	m.serial++
	p := pod{node: n, offset: m.takeOffset(n), workload: w, serial: m.serial, slot: m.Slots.Take(), serves: serves}
	var i int32
	if k := len(m.freePods); k > 0 {
		i = m.freePods[k-1]
		m.freePods = m.freePods[:k-1]
		m.pods[i] = p
	} else {
		i = int32(len(m.pods))
		m.pods = append(m.pods, p)
	}
	m.live++
	if serves {
		m.workloads[w].backends = append(m.workloads[w].backends, i)
	}
	return i
}

// takeOffset prefers addresses that were never used, like Cilium's IPAM, so that an address is not reused at once.
func (m *Model) takeOffset(n int32) uint32 {
	nd := &m.nodes[n]
	nd.pods++
	if nd.nextOffset < reservedAddresses+m.plan.perNode {
		nd.nextOffset++
		return nd.nextOffset - 1
	}
	o := nd.offsets[0]
	nd.offsets = nd.offsets[1:]
	return o
}

// hasRoom reports whether another pod fits on node n.
func (m *Model) hasRoom(n int32) bool { return m.nodes[n].pods < m.plan.perNode }

// remove removes pod i; unserve removes it from the backends of its workload.
func (m *Model) remove(i int32) {
	p := &m.pods[i]
	nd := &m.nodes[p.node]
	nd.pods--
	nd.offsets = append(nd.offsets, p.offset)
	m.Slots.Give(p.slot)
	p.workload = gone
	m.freePods = append(m.freePods, i)
	m.live--
}

// unserve removes pod i from the backends of its workload.
func (m *Model) unserve(i int32) {
	if !m.pods[i].serves {
		return
	}
	m.pods[i].serves = false
	w := &m.workloads[m.pods[i].workload]
	last := len(w.backends) - 1
	w.backends[slices.Index(w.backends, i)] = w.backends[last]
	w.backends = w.backends[:last]
}
