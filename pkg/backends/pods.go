package backends

import (
	"net/netip"
	"slices"
)

// Pod is the pod that has an address, according to a cluster. The zero value means no pod, or an unknown one.
type Pod struct {
	Namespace, Name string
	Identity        uint32     // the security identity
	Host            netip.Addr // the address of its node; invalid for none
}

// known reports whether it is a pod.
func (p Pod) known() bool { return p.Namespace != "" && p.Name != "" }

// Pods returns the pod of a cluster that has an address.
type Pods func(cluster string, ip netip.Addr) Pod

// DualStack reports whether a cluster has backends of both families in the choice, so that two of them may be one pod.
func (c Choice) DualStack() bool {
	four, six := make(map[string]struct{}), make(map[string]struct{})
	for _, g := range c.Groups {
		for _, all := range [][]Backend{g.Backends, g.Draining} {
			for i := range all {
				in, other := six, four
				if all[i].IP.Is4() {
					in, other = four, six
				}
				in[all[i].Cluster] = struct{}{}
				if _, both := other[all[i].Cluster]; both {
					return true
				}
			}
		}
	}
	return false
}

// ByPod returns the choice with one backend for each pod of a service in a namespace: its IPv6 address is the Other
// one of the backend with its IPv4 address. Two addresses are of one pod where their cluster gives the same pod of
// that namespace for both, with one identity, and for no third backend. A pod that is created again under its name
// has more than two addresses until the old ones are gone. Both backends must also be equal in everything else: the
// group, whether they drain, ports, zone, node and host name. Uncertain pairs stay two backends.
func (c Choice) ByPod(namespace string, of Pods) Choice {
	if of == nil || !c.DualStack() {
		return c
	}
	pairs := c.pairs(namespace, of)
	if len(pairs) == 0 {
		return c
	}
	second := make(map[netip.Addr]struct{}, len(pairs))
	for _, six := range pairs {
		second[six] = struct{}{}
	}
	merge := func(all []Backend) []Backend {
		merged := make([]Backend, 0, len(all))
		for _, b := range all {
			if _, merges := second[b.IP]; !merges {
				b.Other = pairs[b.IP]
				merged = append(merged, b)
			}
		}
		return merged
	}
	out := Choice{Groups: slices.Clone(c.Groups)}
	for i := range out.Groups {
		g := &out.Groups[i]
		g.Backends, g.Draining = merge(g.Backends), merge(g.Draining)
	}
	return out
}

// addressesOf has the backends of one pod.
type addressesOf struct {
	four, six *Backend
	list      [2]int // for four and six: the index of the list, by group and draining
	host      [2]netip.Addr
	more      bool // than one of a family, or with different identities
}

// pairs returns the IPv6 addresses of pods by their IPv4 addresses.
func (c Choice) pairs(namespace string, of Pods) map[netip.Addr]netip.Addr {
	type key struct {
		cluster, name string
	}
	pods, identities := make(map[key]*addressesOf), make(map[key]uint32)
	for i, g := range c.Groups {
		for j, all := range [][]Backend{g.Backends, g.Draining} {
			for k := range all {
				b := &all[k]
				p := of(b.Cluster, b.IP)
				if !p.known() || p.Namespace != namespace {
					continue
				}
				at := key{b.Cluster, p.Name}
				if pods[at] == nil {
					pods[at], identities[at] = new(addressesOf), p.Identity
				}
				pods[at].add(b, 2*i+j, p.Host)
				pods[at].more = pods[at].more || identities[at] != p.Identity
			}
		}
	}
	pairs := make(map[netip.Addr]netip.Addr)
	for _, p := range pods {
		if p.certain() {
			pairs[p.four.IP] = p.six.IP
		}
	}
	return pairs
}

func (p *addressesOf) add(b *Backend, list int, host netip.Addr) {
	at, family := &p.six, 1
	if b.IP.Is4() {
		at, family = &p.four, 0
	}
	p.more = p.more || *at != nil
	*at, p.list[family], p.host[family] = b, list, host
}

// certain reports whether both addresses are of one pod. Clusters whose nodes have an address of each family may report
// the one of the pod's family, so node addresses are compared only within one family.
func (p *addressesOf) certain() bool {
	if p.four == nil || p.six == nil || p.more || p.list[0] != p.list[1] {
		return false
	}
	if p.host[0].Is4() == p.host[1].Is4() && p.host[0] != p.host[1] {
		return false
	}
	return p.four.Hostname == p.six.Hostname && p.four.Zone == p.six.Zone && p.four.Node == p.six.Node && slices.Equal(p.four.Ports, p.six.Ports)
}
