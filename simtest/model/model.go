// Package model states what a mesh must show, computed from the values in the kvstores alone. It uses the decoders of the
// wire format and no other part of the program: every rule behind them is implemented here a second time, naively. [Look]
// returns what a mesh does show, in the same form.
package model

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Contents are the values in force of one cluster, by key.
type Contents struct {
	Name   string
	ID     uint32
	Values map[string][]byte
}

// Picture is a view in the common form of the mesh and the model: the shown text of each subject.
type Picture map[string]string

// Expect returns what a reader in the cluster with the ID local expects of a cluster, in a mesh of up to 255.
func Expect(name string, id, local uint32) wire.Expect {
	layout, err := wire.NewLayout(255)
	if err != nil {
		panic(err)
	}
	return wire.Expect{Cluster: name, ClusterID: id, LocalID: local, Layout: layout}
}

// Acceptable reports whether a reader of the cluster may take the value.
func Acceptable(key string, value []byte, e wire.Expect) bool {
	var err error
	switch name := nameOf(key, e.Cluster); FamilyOf(key) {
	case "nodes":
		_, err = wire.DecodeNode(name, value, e)
	case "services":
		_, err = wire.DecodeService(name, value, e)
	case "endpointslices":
		_, err = wire.DecodeEndpointSlice(name, value, e)
	case "identities":
		_, err = wire.DecodeIdentity(name, value, e)
	case "ip":
		_, err = wire.DecodeIP(name, value, e)
	default:
		panic("nothing is written to " + key)
	}
	return err == nil
}

// FamilyOf returns the part of a key that names its kind.
func FamilyOf(key string) string {
	return strings.Split(strings.TrimPrefix(key, wire.StatePrefix+"/"), "/")[0]
}

func nameOf(key, cluster string) string {
	for _, prefix := range []string{"nodes/v1/" + cluster + "/", "services/v1/" + cluster + "/", "endpointslices/v1/" + cluster + "/", "identities/v1/id/", "ip/v1/default/"} {
		if name, ok := strings.CutPrefix(key, "cilium/state/"+prefix); ok {
			return name
		}
	}
	panic("nobody reads " + key)
}

// Of returns the view that a reader in the cluster with the ID local must have of the clusters. Those of own are the
// reader's: their claims are preferred.
func Of(all []Contents, local uint32, own ...string) Picture {
	p := Picture{}
	claims := map[netip.Prefix][]claim{}
	parts := map[string]map[string]*part{}
	partOf := func(service, cluster string) *part {
		if parts[service] == nil {
			parts[service] = map[string]*part{}
		}
		if parts[service][cluster] == nil {
			parts[service][cluster] = &part{}
		}
		return parts[service][cluster]
	}
	for _, c := range all {
		e := Expect(c.Name, c.ID, local)
		for _, key := range slices.Sorted(maps.Keys(c.Values)) {
			name, value := nameOf(key, c.Name), c.Values[key]
			switch FamilyOf(key) {
			case "nodes":
				n, err := wire.DecodeNode(name, value, e)
				mustDecode(err)
				p[c.Name+" node "+name] = nodeText(n)
				for _, cl := range nodeClaims(n) {
					claims[cl.prefix.Masked()] = append(claims[cl.prefix.Masked()], cl)
				}
			case "services":
				s, err := wire.DecodeService(name, value, e)
				mustDecode(err)
				p[c.Name+" service "+name] = serviceText(s)
				partOf(name, c.Name).entry = s
			case "endpointslices":
				s, err := wire.DecodeEndpointSlice(name, value, e)
				mustDecode(err)
				p[c.Name+" slice "+name] = slicedText(endpoints(s))
				of := partOf(s.Namespace+"/"+s.Labels[wire.LabelServiceName], c.Name)
				of.sliced = append(of.sliced, endpoints(s)...)
			case "identities":
				id, err := wire.DecodeIdentity(name, value, e)
				mustDecode(err)
				// The plain spelling has priority, then the lowest; the keys are in order.
				what := fmt.Sprintf("%s identity %d", c.Name, id.ID)
				if _, there := p[what]; !there || name == strconv.Itoa(int(id.ID)) {
					p[what] = string(value)
				}
			case "ip":
				ip, err := wire.DecodeIP(name, value, e)
				mustDecode(err)
				cl := ipClaim(ip, c)
				claims[cl.prefix.Masked()] = append(claims[cl.prefix.Masked()], cl)
			}
		}
	}
	for prefix, of := range claims {
		slices.SortFunc(of, func(a, b claim) int {
			if is := slices.Contains(own, a.cluster); is != slices.Contains(own, b.cluster) {
				return map[bool]int{true: -1, false: 1}[is]
			}
			return a.compare(b)
		})
		p["claims on "+prefix.String()] = claimsText(of)
	}
	for name, of := range parts {
		if text := globalText(of); text != "" {
			p["global "+name] = text
		}
	}
	return p
}

// mustDecode: contents hold only acceptable values.
func mustDecode(err error) {
	if err != nil {
		panic(err)
	}
}

// claim is the claim of one cluster on a prefix.
type claim struct {
	prefix  netip.Prefix // with host bits
	kind    int          // index of claimKinds
	id      uint32       // the cluster's
	cluster string
	node    string // the node, for claims that nodes imply
	says    string
}

// claimKinds in the order of their priority.
func claimKinds() []string { return []string{"host", "cidr", "node", "pod-cidr", "health", "ingress"} }

// compare orders the claims on one prefix: they have the same source, so the kind decides, then the lower cluster
// ID, then the node.
func (c claim) compare(o claim) int {
	return cmp.Or(
		cmp.Compare(c.kind, o.kind), cmp.Compare(c.id, o.id), strings.Compare(c.cluster, o.cluster),
		c.prefix.Addr().Compare(o.prefix.Addr()), strings.Compare(c.node, o.node),
	)
}

func claimsText(sorted []claim) string {
	var lines []string
	for _, c := range sorted {
		lines = append(lines, fmt.Sprintf("%s/%d %s %s", c.cluster, c.id, claimKinds()[c.kind], c.says))
	}
	return strings.Join(lines, "; ")
}

func says(identity uint32, key uint8, host netip.Addr, owner string, ports int) string {
	at := ""
	if host.IsValid() {
		at = " behind " + host.String()
	}
	return fmt.Sprintf("of %s: identity %d, key %d, %d ports%s", owner, identity, key, ports, at)
}

func ipClaim(ip wire.IP, c Contents) claim {
	cl := claim{prefix: ip.Prefix, id: c.ID, cluster: c.Name}
	if !ip.Host {
		cl.kind = 1
	}
	cl.says = says(ip.Identity, ip.EncryptionKey, ip.HostIP, ip.Namespace+"/"+ip.Pod, len(ip.Ports))
	return cl
}

// nodeClaims are the claims of a node (wire.md §4.3): each kind and prefix once, preferably with a tunnel endpoint.
func nodeClaims(n *wire.Node) []claim {
	type which struct {
		prefix netip.Prefix
		kind   int
	}
	made := map[which]claim{}
	tunnelled := map[which]bool{}
	add := func(p netip.Prefix, kind int, identity uint32, tunnel bool, key uint8) {
		w := which{p, kind}
		if _, there := made[w]; there && (tunnelled[w] || !tunnel) {
			return
		}
		host := netip.Addr{}
		if tunnel {
			host = nodeIP(n, p.Addr().Is6())
		}
		made[w] = claim{
			prefix: p, kind: kind, id: n.ClusterID, cluster: n.Cluster, node: n.Name,
			says: says(identity, key, host, n.Name, 0),
		}
		tunnelled[w] = tunnel
	}
	full := func(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }
	for _, a := range n.IPAddresses {
		if a.Addr().IsValid() && !strings.HasSuffix(a.Type, "DNS") && a.Type != "Hostname" {
			add(full(a.Addr()), 2, 6, a.Type == "CiliumInternalIP", 0)
		}
	}
	for _, p := range podCIDRs(n) {
		add(p, 3, 2, true, n.EncryptionKey)
	}
	for kind, ips := range map[int][]netip.Addr{4: healthIPs(n), 5: ingressIPs(n)} {
		for _, a := range ips {
			add(full(a), kind, map[int]uint32{4: 4, 5: 8}[kind], true, n.EncryptionKey)
		}
	}
	return slices.Collect(maps.Values(made))
}

// nodeIP is the address of a node in that family, or else in the other: the first InternalIP, else the last ExternalIP,
// else the first other address except the one in the pod network.
func nodeIP(n *wire.Node, six bool) netip.Addr {
	for _, is6 := range []bool{six, !six} {
		var internal, external, other netip.Addr
		for _, a := range n.IPAddresses {
			ip := a.Addr()
			switch {
			case !ip.IsValid() || ip.Is6() != is6:
			case a.Type == "InternalIP" && !internal.IsValid():
				internal = ip
			case a.Type == "ExternalIP":
				external = ip
			case a.Type == "Something" && !other.IsValid():
				other = ip
			}
		}
		for _, ip := range []netip.Addr{internal, external, other} {
			if ip.IsValid() {
				return ip
			}
		}
	}
	return netip.Addr{}
}

func podCIDRs(n *wire.Node) (out []netip.Prefix) {
	var all []wire.CIDR
	if n.IPv4AllocCIDR != nil {
		all = append(all, *n.IPv4AllocCIDR)
	}
	for _, c := range append(all, n.IPv4SecondaryAllocCIDRs...) {
		if p, ok := c.Prefix(); ok {
			out = append(out, p)
		}
	}
	return out
}

func healthIPs(n *wire.Node) []netip.Addr  { return valid(n.IPv4HealthIP, n.IPv6HealthIP) }
func ingressIPs(n *wire.Node) []netip.Addr { return valid(n.IPv4IngressIP, n.IPv6IngressIP) }

func valid(ips ...[]byte) (out []netip.Addr) {
	for _, ip := range ips {
		if a, ok := netip.AddrFromSlice(ip); ok {
			out = append(out, a.Unmap())
		}
	}
	return out
}

func nodeText(n *wire.Node) string {
	var addresses []string
	for _, a := range n.IPAddresses {
		if a.Addr().IsValid() {
			addresses = append(addresses, a.Type+"="+a.Addr().String())
		}
	}
	return fmt.Sprintf("id %d addresses %v pods %v health %v ingress %v key %d boot %s labels %v",
		n.ClusterID, addresses, podCIDRs(n), healthIPs(n), ingressIPs(n), n.EncryptionKey, n.BootID, n.Labels)
}
