package recorded

import (
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Node is a recorded node with its object.
type Node struct {
	Vector
	Cluster wire.ClusterInfo
	Node    *local.CiliumNode
}

// NodesOf are the nodes. The vectors were made of values; where they say something
// of the source or the annotations that the object cannot say, the rest counts.
func NodesOf(t testing.TB) (out []Node) {
	t.Helper()
	all := Vectors(t, Nodes)
	fromResource := func(source string) []string {
		return []string{`"Source":"` + source + `"`, `"Source":"custom-resource"`}
	}
	const key = "uFm6xgJ5mT8kO5yDhW2pJb8Wq4mV5yD5mZrYzT4Jc2g="
	for i, c := range []struct {
		cluster wire.ClusterInfo
		node    string
		replace []string
	}{
		{node: `
metadata: {name: node1}
spec:
  addresses: [{type: InternalIP, ip: 192.168.2.10}, {type: CiliumInternalIP, ip: 10.2.0.5}]
  ipam: {podCIDRs: [10.2.0.0/24]}
  health: {ipv4: 10.2.0.9}`},
		{node: `
metadata: {name: node2}
spec:
  addresses: [{type: InternalIP, ip: "fd00:2::10"}, {type: CiliumInternalIP, ip: "fd02::5"}]
  ipam: {podCIDRs: ["fd02:0:0:1::/64"]}
  health: {ipv6: "fd02::9"}
  ingress: {ipv6: "fd02::a"}`, replace: fromResource("kvstore")},
		{node: `
metadata: {name: node3.example.com}
spec:
  bootid: 3b9a2a1a-6c58-4d47-9a3b-0f3c2a1d5e77
  encryption: {key: 3}
  addresses:
  - {type: InternalIP, ip: 192.168.2.12}
  - {type: InternalIP, ip: "fd00:2::12"}
  - {type: ExternalIP, ip: 203.0.113.12}
  - {type: CiliumInternalIP, ip: 10.2.2.5}
  - {type: CiliumInternalIP, ip: "fd02:0:0:2::5"}
  ipam: {podCIDRs: [10.2.2.0/24, "fd02:0:0:2::/64", 10.2.3.99/24, "fd02:0:0:3::/64", 10.2.4.0/23]}
  health: {ipv4: 10.2.2.9, ipv6: "fd02:0:0:2::9"}
  ingress: {ipv4: 10.2.2.10, ipv6: "fd02:0:0:2::a"}`},
		{node: `
metadata: {name: wg, annotations: {network.cilium.io/wg-pub-key: ` + key + `}}
spec:
  encryption: {key: 255}
  addresses: [{type: InternalIP, ip: 192.168.2.13}]
  ipam: {podCIDRs: [10.2.5.0/24]}`, replace: []string{`"Annotations":null`, `"Annotations":{"network.cilium.io/wg-pub-key":"` + key + `"}`}},
		{
			node: `
metadata:
  name: labelled
  labels: {a.b/c: "x=y;z", empty: "", html: "<&>", kubernetes.io/hostname: labelled, unicode: "zażółć"}
  annotations: {io.cilium.network.wg-pub-key: ` + key + `, note: "quote\" backslash\\ newline\n tab\t"}
spec:
  addresses: [{type: Hostname, ip: labelled}, {type: ExternalDNS, ip: labelled.example.com}]`,
			replace: []string{`"WireguardPubKey":""`, `"WireguardPubKey":"` + key + `"`},
		},
		{node: "metadata: {name: minimal}", replace: fromResource("")},
		{
			cluster: Widest(),
			node: strings.NewReplacer("NAME", strings.Repeat("n", 253), "KEY", strings.Repeat("k", 63), "VALUE", strings.Repeat("v", 63)).Replace(`
metadata: {name: NAME, labels: {KEY: VALUE}}
spec: {encryption: {key: 255}}`),
			replace: fromResource(""),
		},
		{cluster: wire.ClusterInfo{Name: "cluster3", ID: 3}, node: `
metadata: {name: eni}
spec: {addresses: [{type: InternalIP, ip: 192.168.3.7}]}`, replace: fromResource("kvstore")},
		{node: `
metadata: {name: v4in6}
spec: {addresses: [{type: InternalIP, ip: "::ffff:192.168.2.77"}]}`, replace: fromResource("")},
		{cluster: wire.ClusterInfo{Name: "c", ID: 511}, node: `metadata: {name: "n"}`, replace: fromResource("")},
	} {
		if c.cluster.ID == 0 {
			c.cluster = Cluster2()
		}
		out = append(out, Node{all[i].replaced(t, c.replace), c.cluster, Object[local.CiliumNode](t, c.node)})
	}
	if len(all) != len(out) {
		t.Errorf("%d vectors and %d objects", len(all), len(out))
	}
	return out
}
