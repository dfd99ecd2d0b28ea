package findings

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/identities"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// fact is an object that a cluster publishes, or withdraws.
type fact interface {
	set(w *world, yes bool)
	String() string
}

// change returns a fact as the change of a table.
func change[T any](name string, object *T, yes bool) []store.Change[T] {
	if yes {
		return []store.Change[T]{{Name: name, New: object}}
	}
	return []store.Change[T]{{Name: name, Old: object}}
}

type aNode struct{ *nodes.Node }

func (f aNode) String() string { return "node " + f.Key() }

func (f aNode) set(w *world, yes bool) { w.applyNodes(change(f.Name, f.Node, yes)) }

type aClaim struct{ *ipcache.Entry }

func (f aClaim) String() string { return fmt.Sprint("claim ", f.Prefix(), " of ", f.Cluster().Name) }

func (f aClaim) set(w *world, yes bool) {
	if yes {
		w.ips.Apply([]ipcache.Op{{New: f.Entry}})
	} else {
		w.ips.Apply([]ipcache.Op{{Old: f.Entry}})
	}
}

type aNumber struct{ *identities.Identity }

func (f aNumber) String() string { return fmt.Sprint("number ", f.ID, " of ", f.Cluster) }

func (f aNumber) set(w *world, yes bool) {
	w.identities.Apply(change(fmt.Sprint(f.ID), f.Identity, yes))
}

type aService struct{ *services.Service }

func (f aService) String() string { return "service " + f.Key() }

func (f aService) set(w *world, yes bool) { w.services.Apply(change(f.FullName(), f.Service, yes)) }

type anExport struct{ *services.Export }

func (f anExport) String() string { return "export " + f.Key() }

func (f anExport) set(w *world, yes bool) {
	w.services.ApplyExports(change(f.FullName(), f.Export, yes))
}

type aState struct{ remotecluster.Status }

func (f aState) String() string { return "state of " + f.Name }

func (f aState) set(w *world, yes bool) {
	var all []remotecluster.Status
	for _, c := range w.mesh.Clusters() {
		if c.Name != f.Name {
			all = append(all, c)
		}
	}
	if yes {
		all = append(all, f.Status)
		slices.SortFunc(all, func(a, b remotecluster.Status) int { return strings.Compare(a.Name, b.Name) })
	}
	w.mesh.SetClusters(all...)
}

// node returns a node of cluster "cID". Each text is a pod network or, without a slash, an address.
func node(id uint32, name string, what ...string) fact {
	n := &nodes.Node{Cluster: fmt.Sprint("c", id), ClusterID: id, Name: name, Source: wire.SourceClusterMesh}
	for _, text := range what {
		if strings.Contains(text, "/") {
			n.PodCIDRs = append(n.PodCIDRs, netip.MustParsePrefix(text))
		} else {
			n.Addresses = append(n.Addresses, nodes.Address{Type: wire.AddressInternalIP, IP: netip.MustParseAddr(text)})
		}
	}
	return aNode{n}
}

func number(id uint32, number uint32, labels string) fact {
	cluster := fmt.Sprint("c", id)
	return aNumber{&identities.Identity{ID: id<<16 + number, Cluster: cluster, ClusterID: id, Labels: identities.NewLabels(wire.ParseLabels(labels))}}
}

// service returns a service of a cluster, with a backend for each list of ports such as "http/TCP". Cluster 1 is our
// own.
func service(id uint32, name string, backends ...string) fact {
	s := &services.Service{Cluster: fmt.Sprint("c", id), ClusterID: id, Namespace: "ns", Name: name, Shared: true, Source: wire.SourceClusterMesh}
	if id == 1 {
		s.Source = wire.SourceKubernetes
	}
	for i, ports := range backends {
		b := services.Backend{IP: netip.AddrFrom4([4]byte{10, byte(id), 0, byte(i)})}
		for _, port := range strings.Fields(ports) {
			name, protocol, _ := strings.Cut(port, "/")
			b.Ports = append(b.Ports, services.Port{Name: name, Protocol: protocol, Port: uint16(8000 + i)})
		}
		s.Backends = append(s.Backends, b)
	}
	return aService{s}
}

// export returns the export of a service by a cluster, created at this second. The affinity by client address has this
// timeout in seconds; 0 is no affinity.
func export(cluster, name string, created int64, seconds int32) fact {
	w := &wire.ServiceExport{
		Cluster: cluster, Namespace: "ns", Name: name, ExportCreationTimestamp: wire.ExportTime{Time: time.Unix(created, 0)},
		Type: wire.ServiceExportClusterSetIP, SessionAffinity: wire.SessionAffinityNone,
	}
	if seconds > 0 {
		w.SessionAffinity = wire.SessionAffinityClientIP
		w.SessionAffinityConfig = &wire.SessionAffinityConfig{ClientIP: &wire.ClientIPConfig{TimeoutSeconds: &seconds}}
	}
	return anExport{services.ExportFromWire(w)}
}

func refused(id uint32, n int) fact {
	return aState{remotecluster.Status{Name: fmt.Sprint("c", id), ID: id, State: remotecluster.Ready, Families: map[wire.Resource]remotecluster.FamilyStatus{
		wire.IPs: {
			Rejected: n + 1, Rejections: map[wire.Reason]int{wire.ReasonRange: n, wire.ReasonKey: 1},
			Example: store.Refusal{Key: "cilium/state/ip/v1/default/10.0.0.9", Why: "range: identity 7 is nobody's"},
		},
	}}}
}

func taken(id uint32, holder string) fact {
	return aState{remotecluster.Status{Name: fmt.Sprint("c", id), State: remotecluster.Failed, IDConflict: &remotecluster.IDConflict{ID: 2, Holder: holder}}}
}

// situation is a set of facts that causes a conflict.
type situation struct {
	name  string
	facts []fact
	want  []string // key and clusters
	code  codes.Code
	text  string // contained in the message
	rule  string
}

func situations() []situation {
	return []situation{
		{
			"one cluster ID for two",
			[]fact{refusedNothing(2), taken(5, "c2")},
			[]string{"cluster-id/2 c2,c5"},
			codes.ClusterIDConflict, "cluster ID 2 is used by c2 and c5", "the first cluster keeps it",
		},
		{
			"an address twice",
			[]fact{aClaim{claim("10.0.0.1/32", 3)}, aClaim{claim("10.0.0.1/32", 2)}},
			[]string{"ip/10.0.0.1/32 c2,c3"},
			codes.AddressConflict, "10.0.0.1/32 is claimed by c2 and c3; c2 counts", "cluster ID 2 precedes 3",
		},
		{
			"a node's address twice",
			[]fact{node(3, "n", "192.168.0.1"), node(2, "n", "192.168.0.1")},
			[]string{"node-ip/192.168.0.1/32 c2,c3"},
			codes.NodeIPConflict, "192.168.0.1/32 is claimed by c2 and c3; c2 counts", "cluster ID 2 precedes 3",
		},
		{
			"a node within the pods of another cluster",
			[]fact{node(3, "n", "10.1.2.3", "10.3.0.0/16"), node(2, "n", "192.168.0.1", "10.1.0.0/16")},
			[]string{"node-ip/10.1.0.0/16 c3,c2"},
			codes.NodeIPConflict, "the pod network 10.1.0.0/16 of c2 contains 10.1.2.3/32 of c3", "the longest prefix counts",
		},
		{
			"a pod network twice",
			[]fact{node(3, "n", "10.1.0.0/24"), node(2, "n", "10.1.0.0/24"), node(2, "m", "10.1.1.0/24")},
			[]string{"pod-cidr/10.1.0.0/24 c2,c3"},
			codes.PodCIDRConflict, "10.1.0.0/24 is a pod network of c2 and c3; c2 counts", "cluster ID 2 precedes 3",
		},
		{
			"a pod network within another one",
			[]fact{
				node(2, "n", "10.0.0.0/8"), node(3, "a", "10.1.0.0/24"), node(3, "b", "10.1.1.0/24", "fd00::/64"), node(4, "a", "10.9.0.0/16"),
				node(2, "inner", "10.7.0.0/24"),
			},
			[]string{"pod-cidr/10.0.0.0/8 c3,c4,c2"},
			codes.PodCIDRConflict, "the pod network 10.0.0.0/8 of c2 contains 2 pod networks of c3 such as 10.1.0.0/24 and 10.9.0.0/16 of c4", "the longest prefix counts",
		},
		{
			"a pod network twice, and within",
			[]fact{node(4, "n", "10.1.0.0/16"), node(3, "n", "10.1.0.0/16"), node(2, "n", "10.1.7.0/24")},
			[]string{"pod-cidr/10.1.0.0/16 c3,c4,c2"},
			codes.PodCIDRConflict, "is a pod network of c3 and c4; c3 counts (cluster ID 3 precedes 4); the pod network 10.1.0.0/16 of c3 and c4 contains 10.1.7.0/24 of c2", "cluster ID 3",
		},
		{
			"claims in the own networks",
			[]fact{ownNetwork{"10.200.0.0/24"}, stray{2, "10.200.0.1/32", 131072}, stray{2, "10.200.0.2/32", 131072}},
			[]string{"claim/c2/own-network c2"},
			codes.OwnNetworkClaimed, "2 claims of c2 are inside the own networks, such as 10.200.0.1/32: inside 10.200.0.0/24, a pod network of the own cluster", "never a remote's",
		},
		{
			"claims for special use",
			[]fact{stray{2, "169.254.169.254/32", 131072}},
			[]string{"claim/c2/special-use c2"},
			codes.SpecialUseClaimed, "1 claim of c2 is on an address for special use, such as 169.254.169.254/32: in 169.254.0.0/16", "special use",
		},
		{
			"claims in the network of another",
			[]fact{node(3, "z", "10.201.0.0/24"), stray{2, "10.201.0.1/32", 131072}},
			[]string{"claim/c2/foreign-network c2,c3"},
			codes.ForeignNetworkClaimed, "inside 10.201.0.0/24, a pod network that nodes of c3 announce", "whose nodes announce it",
		},
		{
			"claims with privileged identities",
			[]fact{stray{2, "10.202.0.1/32", wire.IdentityKubeAPIServer}},
			[]string{"claim/c2/reserved-identity c2"},
			codes.ReservedIdentityClaimed, "the reserved identity kube-apiserver", "must not claim",
		},
		{
			"backends in the own networks",
			[]fact{serving(2, "own", "10.2.0.1", "10.203.0.1"), ownNetwork{"10.203.0.0/24"}},
			[]string{"claim/c2/backends-own-network c2"},
			codes.OwnNetworkBackends, "1 backend in 1 service of c2 is inside the own networks, such as 10.203.0.1 of ns/own: inside 10.203.0.0/24, a pod network of the own cluster", "never a remote's",
		},
		{
			"backends for special use",
			[]fact{serving(2, "special", "10.2.0.1", "127.0.0.1", "169.254.169.254")},
			[]string{"claim/c2/backends-special-use c2"},
			codes.SpecialUseBackends, "2 backends in 1 service of c2 are on addresses for special use, such as 127.0.0.1 of ns/special: in 127.0.0.0/8", "special use",
		},
		{
			"identities out of range",
			[]fact{refused(2, 3)},
			[]string{"identity/c2 c2"},
			codes.IdentityRangeConflict, "3 of its ips have identities outside of the range of cluster c2 (ID 2) and are refused, such as cilium/state/ip/v1/default/10.0.0.9: range", "never used",
		},
		{
			"equal labels twice",
			[]fact{number(2, 9, "k8s:a=x;k8s:b=y;"), number(2, 7, "k8s:b=y;k8s:a=x;"), number(3, 7, "k8s:a=x;k8s:b=y;"), number(2, 8, "k8s:a=x;")},
			[]string{"identity/c2/131079 c2"},
			codes.IdentityTwice, "c2 has allocated 2 identities for the same labels: 131079 and 131081, for k8s:a=x;k8s:b=y;", "",
		},
		{
			"a service whose ports differ",
			[]fact{
				service(1, "web", "http/TCP metrics/TCP", "http/TCP"), service(3, "web", "http/UDP metrics/TCP"), service(2, "web", "http/TCP metrics/TCP"), service(4, "web"),
			},
			[]string{"service-port/ns/web c1,c2,c3"},
			codes.ServicePortConflict, "ns/web: port http (TCP) is in c1 and c2, not in c3; port http (UDP) is in c3, not in c1 and c2.", "its own cluster",
		},
		{
			"a service whose session affinities differ",
			[]fact{export("c3", "db", 200, 0), export("c2", "db", 100, 60), export("c4", "db", 100, 60), export("c1", "db", 300, 60), export("c2", "mq", 1, 0)},
			[]string{"service-affinity/ns/db c2,c4,c3,c1"},
			codes.ServiceAffinityConflict,
			"ns/db: the session affinity of its exports is ClientIP for 60 s in c2, c4 and c1, None in c3; that of c2 counts",
			"the oldest export counts: c2 has one since 1970-01-01T00:01:40Z, c3 since 1970-01-01T00:03:20Z",
		},
		{
			"a service whose timeouts of affinity differ, in exports that are equally old",
			[]fact{export("c3", "cache", 100, 60), export("c2", "cache", 100, 10800), export("c4", "cache", 100, 60)},
			[]string{"service-affinity/ns/cache c2,c3,c4"},
			codes.ServiceAffinityConflict,
			"ClientIP for 10800 s in c2, ClientIP for 60 s in c3 and c4; that of c2 counts",
			"equally old (1970-01-01T00:01:40Z) that of the first name counts, c2 before c3",
		},
	}
}

// refusedNothing is a cluster without errors.
func refusedNothing(id uint32) fact {
	return aState{remotecluster.Status{Name: fmt.Sprint("c", id), ID: id, State: remotecluster.Ready}}
}

// appliesNodes returns the function with which a view applies nodes: they are claims as well.
func appliesNodes(t testing.TB, w *world) func([]store.Change[nodes.Node]) {
	v, err := clustermesh.NewIngest(wire.ClusterInfo{Name: "c1", ID: 1, MaxConnectedClusters: 255}, w.watch.Tables)
	if err != nil {
		t.Fatal(err)
	}
	return v.ApplyNodes()
}
