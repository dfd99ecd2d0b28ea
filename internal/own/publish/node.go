package publish

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// The annotations of a [local.CiliumNode] with its WireGuard key, the current and the older one.
const (
	annotationWireguard      = "network.cilium.io/wg-pub-key"
	annotationWireguardAlias = "io.cilium.network.wg-pub-key"
)

// Node is what the cluster publishes of a machine of which only Kubernetes knows (spec wire.md §1.2): its addresses,
// without names, and the networks of its pods. The error names the parts that are left out. The maps are shared with
// the node.
func Node(cluster wire.ClusterInfo, node *corev1.Node) (*wire.Node, error) {
	out := newNode(cluster, wire.SourceKubernetes, node.Name, node.Labels, node.Annotations)
	for _, a := range node.Status.Addresses {
		addAddress(out, string(a.Type), a.Address)
	}
	networks := node.Spec.PodCIDRs
	if len(networks) == 0 && node.Spec.PodCIDR != "" {
		networks = []string{node.Spec.PodCIDR}
	}
	if err := addNetworks(out, "spec.podCIDRs", networks); err != nil {
		return out, fmt.Errorf("the Node %s: %w", node.Name, err)
	}
	return out, nil
}

// CiliumNode is what the cluster publishes of a machine that runs Cilium (spec wire.md §1.2). The error names the parts
// that are left out; without a node, it is the reason why nothing can be published. The maps are shared with the node.
func CiliumNode(cluster wire.ClusterInfo, node *local.CiliumNode) (*wire.Node, error) {
	out := newNode(cluster, wire.SourceCustomResource, node.Name, node.Labels, node.Annotations)
	out.BootID = node.Spec.BootID
	out.WireguardPubKey = cmp.Or(node.Annotations[annotationWireguard], node.Annotations[annotationWireguardAlias])
	for _, a := range node.Spec.Addresses {
		addAddress(out, a.Type, a.IP)
	}
	var err error
	if out.EncryptionKey, err = encryptionKey(node.Spec.Encryption.Key); err != nil {
		return nil, fmt.Errorf("the CiliumNode %s: %w", node.Name, err)
	}
	var errs [6]error
	errs[0] = addNetworks(out, "spec.ipam.podCIDRs", node.Spec.IPAM.PodCIDRs)
	for _, pool := range node.Spec.IPAM.Pools.Allocated {
		errs[1] = errors.Join(errs[1], addNetworks(out, "spec.ipam.pools.allocated", pool.CIDRs))
	}
	out.IPv4HealthIP, errs[2] = optionalIP("health.ipv4", node.Spec.HealthAddressing.IPv4)
	out.IPv6HealthIP, errs[3] = optionalIP("health.ipv6", node.Spec.HealthAddressing.IPv6)
	out.IPv4IngressIP, errs[4] = optionalIP("ingress.ipv4", node.Spec.IngressAddressing.IPv4)
	out.IPv6IngressIP, errs[5] = optionalIP("ingress.ipv6", node.Spec.IngressAddressing.IPv6)
	if err := errors.Join(errs[:]...); err != nil {
		return out, fmt.Errorf("the CiliumNode %s: %w", node.Name, err)
	}
	return out, nil
}

func newNode(cluster wire.ClusterInfo, source wire.Source, name string, labels, annotations map[string]string) *wire.Node {
	return &wire.Node{
		Name: name, Cluster: cluster.Name, ClusterID: cluster.ID, Source: source.String(),
		Labels: orNil(labels), Annotations: orNil(annotations),
	}
}

// addAddress adds an address, unless it is a name.
func addAddress(to *wire.Node, kind, text string) {
	if ip := net.ParseIP(text); ip != nil {
		to.IPAddresses = append(to.IPAddresses, wire.NodeAddress{Type: kind, IP: ip})
	}
}

// addNetworks adds the networks of a node's pods, of which the first of each family is the primary one. The error is for
// those of a field that are none.
func addNetworks(to *wire.Node, field string, networks []string) (wrong error) {
	for _, text := range networks {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			wrong = errors.Join(wrong, fmt.Errorf("%s: %q is no network", field, text))
			continue
		}
		c := wire.NewCIDR(p)
		switch v4 := p.Addr().Is4(); {
		case v4 && to.IPv4AllocCIDR == nil:
			to.IPv4AllocCIDR = &c
		case v4:
			to.IPv4SecondaryAllocCIDRs = append(to.IPv4SecondaryAllocCIDRs, c)
		case to.IPv6AllocCIDR == nil:
			to.IPv6AllocCIDR = &c
		default:
			to.IPv6SecondaryAllocCIDRs = append(to.IPv6SecondaryAllocCIDRs, c)
		}
	}
	return wrong
}

// optionalIP reads an address that may be absent.
func optionalIP(field, text string) (net.IP, error) {
	ip := net.ParseIP(text)
	if text != "" && ip == nil {
		return nil, fmt.Errorf("spec.%s: %q is no IP address", field, text)
	}
	return ip, nil
}

func encryptionKey(key int) (uint8, error) {
	if key < 0 || key > math.MaxUint8 {
		return 0, fmt.Errorf("invalid encryption key %d: it must be 0 to %d", key, math.MaxUint8)
	}
	return uint8(key), nil
}

func orNil(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	return m
}
