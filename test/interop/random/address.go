package random

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// clusterLabel is the key of the label that names an identity's cluster.
const clusterLabel = "io.cilium.k8s.policy.cluster"

// identities returns the least and the greatest identity of the cluster.
func (m *Maker) identities() (least, greatest uint32) {
	shift := 16
	if m.cluster.MaxConnectedClusters == 511 {
		shift = 15
	}
	return m.cluster.ID << shift, m.cluster.ID<<shift | (1<<shift - 1)
}

// Identity makes the i-th identity: 0 and 1 are the cluster's least and greatest.
func (m *Maker) Identity(i int) model.Identity {
	least, greatest := m.identities()
	id := least + uint32(max(i-1, 0))
	if i == 1 {
		id = greatest
	}
	identity := model.Identity{
		Cluster: m.cluster.Name, ID: id,
		Labels: []model.Label{{Source: "k8s", Key: clusterLabel, Value: m.cluster.Name}},
	}
	labels := m.labels()
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		value := labels[key]
		if m.percent(30) {
			value = strings.ReplaceAll(m.printable(500), ";", ",") // a semicolon ends a label
		}
		source := pick(m.r, "k8s", "k8s", "k8s", "reserved", "any", "unspec", "container", "cni", "fqdn", "Ünï", "<&>")
		identity.Labels = append(identity.Labels, model.Label{Source: source, Key: key, Value: value})
	}
	slices.SortFunc(identity.Labels, func(a, b model.Label) int { return strings.Compare(a.Key, b.Key) })
	return identity
}

// Address makes the i-th address or prefix. A few prefixes of full length have the
// address of another object, which is a host: they are two objects all the same.
func (m *Maker) Address(i int) model.Address {
	least, greatest := m.identities()
	a := model.Address{
		Cluster:       m.cluster.Name,
		Identity:      pick(m.r, least, greatest, least+m.r.Uint32N(greatest-least), m.r.Uint32N(16), 255),
		EncryptionKey: pick(m.r, uint8(0), 1, 15, math.MaxUint8),
		Metadata:      pick(m.r, "", "cilium-global:default:node-1:1234", m.text(500)),
	}
	a.Prefix, a.Host = addressOf(i)
	if !m.percent(20) {
		a.HostIP = m.addr()
	}
	if m.percent(70) {
		a.Namespace, a.Pod = namespace(m.r.IntN(100)), name("pod-", m.r.IntN(1000), maxName)
		a.ServiceAccount = pick(m.r, "", "default", name("sa-", 7, maxName))
	}
	a.NamedPorts = m.namedPorts()
	return a
}

// namedPorts makes ports that readers accept, sorted by name, as they are written.
func (m *Maker) namedPorts() []model.NamedPort {
	var ports []model.NamedPort
	for i := range m.few(20) {
		ports = append(ports, model.NamedPort{
			Name:     fmt.Sprint(pick(m.r, "a", "0-p-", "fifteen-char-"), 10+i),
			Port:     pick(m.r, uint16(1), 80, math.MaxUint16),
			Protocol: pick(m.r, "TCP", "UDP", "SCTP"),
		})
	}
	slices.SortFunc(ports, func(a, b model.NamedPort) int { return strings.Compare(a.Name, b.Name) })
	return ports
}
