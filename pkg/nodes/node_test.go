package nodes

import (
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

var netipTypes = cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})

// goldenNodes returns the decoded vectors, by key without the state prefix.
func goldenNodes(t *testing.T) map[string]*Node {
	t.Helper()
	data, err := os.ReadFile("testdata/golden/nodes.json")
	waittest.Must(t, err)
	var vectors []struct{ Key, Value string }
	waittest.Must(t, json.Unmarshal(data, &vectors))
	layout, err := wire.NewLayout(511)
	waittest.Must(t, err)
	out := make(map[string]*Node)
	for _, v := range vectors {
		key := strings.TrimPrefix(v.Key, "cilium/state/nodes/v1/")
		cluster, name, _ := strings.Cut(key, "/")
		var id struct{ ClusterID uint32 }
		waittest.Must(t, json.Unmarshal([]byte(v.Value), &id))
		n, err := wire.DecodeNode(name, []byte(v.Value), wire.Expect{Cluster: cluster, ClusterID: id.ClusterID, LocalID: 1, Layout: layout})
		if r, refused := errors.AsType[*wire.RejectError](err); refused && r.Reason == wire.ReasonName {
			continue // it has a label that Kubernetes does not allow
		}
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		out[key] = FromWire(n, wire.SourceClusterMesh)
	}
	return out
}

func TestGoldenNodesAreConvertedInFull(t *testing.T) {
	t.Parallel()
	nodes := goldenNodes(t)
	want := &Node{
		Cluster: "cluster2", ClusterID: 2, Name: "node3.example.com",
		Addresses: []Address{
			{"InternalIP", ip("192.168.2.12")},
			{"InternalIP", ip("fd00:2::12")},
			{"ExternalIP", ip("203.0.113.12")},
			{"CiliumInternalIP", ip("10.2.2.5")},
			{"CiliumInternalIP", ip("fd02:0:0:2::5")},
		},
		PodCIDRs: []netip.Prefix{
			cidr("10.2.2.0/24"), cidr("10.2.3.0/24"), cidr("10.2.4.0/23"),
			cidr("fd02:0:0:2::/64"), cidr("fd02:0:0:3::/64"),
		},
		HealthIPs:     []netip.Addr{ip("10.2.2.9"), ip("fd02:0:0:2::9")},
		IngressIPs:    []netip.Addr{ip("10.2.2.10"), ip("fd02:0:0:2::a")},
		EncryptionKey: 3,
		BootID:        "3b9a2a1a-6c58-4d47-9a3b-0f3c2a1d5e77",
		Source:        wire.SourceClusterMesh,
	}
	if diff := cmp.Diff(want, nodes["cluster2/node3.example.com"], netipTypes); diff != "" {
		t.Error(diff)
	}
	for key, n := range nodes {
		if n.Key() != key {
			t.Errorf("key %q became %q", key, n.Key())
		}
	}
	if n := nodes["cluster2/minimal"]; n.Addresses != nil || n.Labels != nil || len(n.Claims()) != 0 {
		t.Errorf("a node without anything: %+v", n)
	}
	if _, read := nodes["cluster2/labelled"]; read {
		t.Error("a node with labels that Kubernetes does not allow was read")
	}
	if n := nodes["cluster2/wg"]; n.WireguardPublicKey == "" || n.EncryptionKey != 255 {
		t.Errorf("a node with WireGuard: %+v", n)
	}
}

func TestFromWire(t *testing.T) {
	t.Parallel()
	mapped := net.ParseIP("::ffff:192.0.2.7")
	tests := map[string]struct {
		in   wire.Node
		want Node
	}{
		"an address without an IP is left out, labels stay": {
			wire.Node{IPAddresses: []wire.NodeAddress{{Type: "Hostname"}}, Labels: map[string]string{"a": "b"}},
			Node{Labels: map[string]string{"a": "b"}},
		},
		"an IPv4-mapped address is IPv4": {
			wire.Node{IPAddresses: []wire.NodeAddress{{Type: "InternalIP", IP: mapped}}, IPv6HealthIP: mapped},
			Node{Addresses: []Address{{"InternalIP", ip("192.0.2.7")}}, HealthIPs: []netip.Addr{ip("192.0.2.7")}},
		},
		"an unknown type of address is kept": {
			wire.Node{IPAddresses: []wire.NodeAddress{{Type: "Moon", IP: net.ParseIP("192.0.2.7")}}},
			Node{Addresses: []Address{{"Moon", ip("192.0.2.7")}}},
		},
		"an address without IP is dropped": {
			wire.Node{IPAddresses: []wire.NodeAddress{{Type: "InternalIP"}, {Type: "ExternalIP", IP: net.ParseIP("192.0.2.7")}}},
			Node{Addresses: []Address{{"ExternalIP", ip("192.0.2.7")}}},
		},
		"host bits of a pod CIDR are masked off": {
			wire.Node{IPv4AllocCIDR: &wire.CIDR{IP: net.ParseIP("10.2.0.77"), Mask: net.CIDRMask(24, 32)}},
			Node{PodCIDRs: []netip.Prefix{cidr("10.2.0.0/24")}},
		},
		"an empty mask is no pod CIDR": {
			wire.Node{IPv4AllocCIDR: &wire.CIDR{IP: net.ParseIP("10.2.0.0")}},
			Node{},
		},
		"a mask with holes is no pod CIDR": {
			wire.Node{IPv4AllocCIDR: &wire.CIDR{IP: net.ParseIP("10.2.0.0"), Mask: net.IPMask{255, 0, 255, 0}}},
			Node{},
		},
		"a mask of the other family is no pod CIDR": {
			wire.Node{IPv6AllocCIDR: &wire.CIDR{IP: net.ParseIP("fd00::"), Mask: net.CIDRMask(24, 32)}},
			Node{},
		},
		"a mask without address is no pod CIDR": {
			wire.Node{IPv6SecondaryAllocCIDRs: []wire.CIDR{{Mask: net.CIDRMask(64, 128)}, {IP: net.ParseIP("fd00::"), Mask: net.CIDRMask(64, 128)}}},
			Node{PodCIDRs: []netip.Prefix{cidr("fd00::/64")}},
		},
		"empty maps are none": {
			wire.Node{Labels: map[string]string{}, Annotations: map[string]string{"a": "b"}},
			Node{Annotations: map[string]string{"a": "b"}},
		},
		"the writer's source does not matter": {
			wire.Node{Source: "local"},
			Node{},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := FromWire(&tc.in, wire.SourceClusterMesh)
			tc.want.Source = wire.SourceClusterMesh
			if diff := cmp.Diff(&tc.want, got, netipTypes); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestEqual: a change of any field makes two nodes unequal.
func TestEqual(t *testing.T) {
	t.Parallel()
	base := func() *Node {
		n := *goldenNodes(t)["cluster2/node3.example.com"]
		n.Addresses = slices.Clone(n.Addresses)
		n.Labels, n.Annotations = map[string]string{"a": "b"}, map[string]string{"a": "b"}
		return &n
	}
	if !base().Equal(base()) {
		t.Error("two equal nodes differ")
	}
	changes := map[string]func(*Node){
		"cluster":     func(n *Node) { n.Cluster = "x" },
		"cluster ID":  func(n *Node) { n.ClusterID++ },
		"name":        func(n *Node) { n.Name = "x" },
		"address":     func(n *Node) { n.Addresses[0].Type = "x" },
		"pod CIDRs":   func(n *Node) { n.PodCIDRs = n.PodCIDRs[1:] },
		"health IPs":  func(n *Node) { n.HealthIPs = nil },
		"ingress IPs": func(n *Node) { n.IngressIPs = nil },
		"key":         func(n *Node) { n.EncryptionKey++ },
		"WireGuard":   func(n *Node) { n.WireguardPublicKey = "x" },
		"boot ID":     func(n *Node) { n.BootID = "x" },
		"labels":      func(n *Node) { n.Labels = nil },
		"annotations": func(n *Node) { n.Annotations = map[string]string{"a": "c"} },
		"source":      func(n *Node) { n.Source = wire.SourceKVStore },
	}
	for name, change := range changes {
		n := base()
		change(n)
		if n.Equal(base()) || base().Equal(n) {
			t.Errorf("a change of the %s was not noticed", name)
		}
	}
}

func ip(s string) netip.Addr     { return netip.MustParseAddr(s) }
func cidr(s string) netip.Prefix { return netip.MustParsePrefix(s) }
