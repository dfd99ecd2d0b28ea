package dnsserver

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/miekg/dns"

	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// inMesh finds a name in the zone of the mesh, which has a tree for each cluster:
//
//	SERVICE.NAMESPACE.svc.CLUSTER   its backends, and below it ports and hosts
//	NODE.node.CLUSTER               the addresses of a node
//	ADDRESS.pod.CLUSTER             an address that the cluster has, with dashes
func (a *answer) inMesh(labels []string) {
	n := len(labels)
	cluster := labels[n-1]
	if _, known := a.view.ClustersByName()[cluster]; !known && cluster != a.own {
		return
	}
	if n == 1 {
		a.exists = true
		return
	}
	rest := labels[:n-2]
	switch tree := labels[n-2]; {
	case tree == "svc":
		a.belowServices(rest, cluster, "svc."+cluster+"."+a.zone.name)
	case len(rest) == 0:
		a.exists = tree == "node" || tree == "pod"
	case tree == "node":
		if node, _, found := a.view.Nodes.Table().Get(a.txn, nodes.ByName(cluster, strings.Join(rest, "."))); found {
			a.all(addressesOf(node))
		}
	case tree == "pod":
		if ip := undashed(strings.Join(rest, ".")); ip.IsValid() && a.claims(cluster, ip) {
			a.all([]netip.Addr{ip})
		}
	}
}

// mostAddresses bounds the addresses of a node.
const mostAddresses = 64

// addressesOf returns the addresses at which a node can be reached.
func addressesOf(n *nodes.Node) (all []netip.Addr) {
	for _, a := range n.Addresses[:min(len(n.Addresses), mostAddresses)] {
		if a.Type != wire.AddressCiliumInternalIP && !slices.Contains(all, a.IP) {
			all = append(all, a.IP)
		}
	}
	return all
}

// claims reports whether an address belongs to the cluster.
func (a *answer) claims(cluster string, ip netip.Addr) bool {
	e := a.winner(ip)
	return e != nil && e.Cluster().Name == cluster
}

// winner returns the entry that wins for this single address; nil for none. An entry of a network that contains the
// address does not count.
func (a *answer) winner(ip netip.Addr) *ipcache.Entry {
	if e := a.view.IPs.LookupWinner(ip); e != nil && e.Prefix().IsSingleIP() {
		return e
	}
	return nil
}

// reverse is the form of addresses in a reverse zone: the number of labels, their base, and the bits of each.
type reverse struct{ labels, base, bits int }

// address returns the address that labels of a reverse zone stand for; invalid for none. partial reports whether the
// labels may be the end of the name of an address.
func (v reverse) address(labels []string) (ip netip.Addr, partial bool) {
	if len(labels) > v.labels {
		return ip, false
	}
	bytes := make([]byte, v.labels*v.bits/8)
	for i, label := range labels {
		n, err := strconv.ParseUint(label, v.base, v.bits)
		if err != nil || strconv.FormatUint(n, v.base) != label {
			return ip, false
		}
		at := (len(labels) - 1 - i) * v.bits
		bytes[at/8] |= byte(n) << (8 - v.bits - at%8)
	}
	if len(labels) < v.labels {
		return ip, true
	}
	ip, _ = netip.AddrFromSlice(bytes)
	return ip, false
}

// pointer adds a PTR record with the name of the pod address or node that has an address.
func (a *answer) pointer(labels []string, family reverse, mesh string) {
	ip, partial := family.address(labels)
	if partial { // there may be addresses below it
		a.exists = true
		return
	}
	if !ip.IsValid() {
		return
	}
	e := a.winner(ip)
	if e == nil {
		return
	}
	a.exists = true
	if a.kind != dns.TypePTR {
		return
	}
	name := dashed(ip.Unmap()) + ".pod." + e.Cluster().Name + "." + mesh
	if node := e.NodeName(); node != "" {
		name = strings.ToLower(node) + ".node." + e.Cluster().Name + "." + mesh
	}
	if _, valid := dns.IsDomainName(name); valid && len(name) <= maxName {
		a.records = append(a.records, &dns.PTR{Hdr: a.header(a.name, dns.TypePTR, a.ttl), Ptr: name})
	}
}
