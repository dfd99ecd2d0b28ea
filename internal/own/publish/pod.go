package publish

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// The keys of the labels that a pod's identity has in addition to the pod's own, and the prefix of all keys that a pod
// must not set.
const (
	labelNamespace       = wire.LabelNamespace
	labelNamespaceLabels = "io.cilium.k8s.namespace.labels."
	labelServiceAccount  = "io.cilium.k8s.policy.serviceaccount"
	labelsOfCilium       = "io.cilium.k8s."
)

// wantedPod is what follows from the objects of one pod that is to be published. It is immutable.
type wantedPod struct {
	uid     types.UID
	created time.Time
	// identity is the pod's identity from its CiliumEndpoint; 0 if there is none: then one is to be allocated for the
	// labels.
	identity uint32
	labels   wire.Labels
	text     string // the labels as they are written
	// pairs are its addresses, without the identity.
	pairs []wire.IPIdentityPair
}

// podRules are what makes a wantedPod of objects.
type podRules struct {
	own           wire.ClusterInfo
	node          string
	defaultGlobal bool
	labels        *LabelFilter
}

// wanted is the value to publish for a pod, nil for none: it runs on another node, is on the host's network, has ended,
// has no address yet, or its namespace is not global (spec wire.md §4.5). Namespace and endpoint may be nil. A pod with
// an endpoint has the identity and the addresses of that; in a cluster with Cilium every pod is to have one.
func (r podRules) wanted(pod *corev1.Pod, namespace *corev1.Namespace, endpoint *local.CiliumEndpoint, hasCilium bool) *wantedPod {
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	if pod.Spec.NodeName != r.node || pod.Spec.HostNetwork || ended || !global(namespace, r.defaultGlobal) {
		return nil
	}
	w := &wantedPod{uid: pod.UID, created: pod.CreationTimestamp.Time}
	switch {
	case endpoint == nil && hasCilium:
		return nil
	case endpoint == nil:
		w.pairs = pairsOfPod(pod)
		w.labels = r.identityLabels(pod, namespace)
		w.text = w.labels.Encode()
	default:
		w.pairs = pairsOfEndpoint(endpoint, pod.Spec.ServiceAccountName, pod.Spec.NodeName)
		w.identity = identityOf(endpoint)
		if w.identity == 0 {
			return nil
		}
	}
	if len(w.pairs) == 0 {
		return nil
	}
	return w
}

// identityLabels are the labels that make a pod's identity: its own, those of its namespace, and where it belongs.
// Labels that the filter leaves out do not count, except for the cluster, which every identity names.
func (r podRules) identityLabels(pod *corev1.Pod, namespace *corev1.Namespace) wire.Labels {
	var out wire.Labels
	add := func(key, value string) {
		l := wire.Label{Source: wire.LabelSourceKubernetes, Key: key, Value: value}
		if r.labels.Includes(l) {
			out = append(out, l)
		}
	}
	for key, value := range pod.Labels {
		// A pod must not set labels about itself on which others rely.
		if key != labelNamespace && !strings.HasPrefix(key, labelsOfCilium) {
			add(key, value)
		}
	}
	if namespace != nil {
		for key, value := range namespace.Labels {
			add(labelNamespaceLabels+key, value)
		}
	}
	add(labelNamespace, pod.Namespace)
	if account := pod.Spec.ServiceAccountName; account != "" {
		add(labelServiceAccount, account)
	}
	out = append(out, wire.Label{Source: wire.LabelSourceKubernetes, Key: wire.LabelCluster, Value: r.own.Name})
	slices.SortFunc(out, func(a, b wire.Label) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// identityOf is the identity that an endpoint has; 0 when it has none yet.
func identityOf(endpoint *local.CiliumEndpoint) uint32 {
	id := endpoint.Status.Identity
	if id == nil || id.ID < 0 || id.ID > math.MaxUint32 {
		return 0
	}
	return uint32(id.ID)
}

// pairsOfPod are the addresses of a pod, as its kubelet says.
func pairsOfPod(pod *corev1.Pod) []wire.IPIdentityPair {
	texts := []string{pod.Status.PodIP}
	for _, ip := range pod.Status.PodIPs {
		texts = append(texts, ip.IP)
	}
	hosts := []string{pod.Status.HostIP}
	for _, ip := range pod.Status.HostIPs {
		hosts = append(hosts, ip.IP)
	}
	base := wire.IPIdentityPair{Namespace: pod.Namespace, Pod: pod.Name, ServiceAccount: pod.Spec.ServiceAccountName}
	for _, c := range slices.Concat(pod.Spec.Containers, sidecars(pod)) {
		for _, p := range c.Ports {
			base.NamedPorts = addNamedPort(base.NamedPorts, p.Name, string(p.Protocol), p.ContainerPort)
		}
	}
	return pairs(base, texts, hosts)
}

// sidecars are the init containers that run as long as the pod. Kubernetes counts their ports as those of containers.
func sidecars(pod *corev1.Pod) (all []corev1.Container) {
	for _, c := range pod.Spec.InitContainers {
		if value(c.RestartPolicy) == corev1.ContainerRestartPolicyAlways {
			all = append(all, c)
		}
	}
	return all
}

// pairsOfEndpoint are the addresses of a pod, as its Cilium agent says. Account and node come from the pod; empty when
// they are not known.
func pairsOfEndpoint(endpoint *local.CiliumEndpoint, account, node string) []wire.IPIdentityPair {
	s := &endpoint.Status
	if s.Networking == nil {
		return nil
	}
	base := wire.IPIdentityPair{
		Namespace: endpoint.Namespace, Pod: endpoint.Name,
		ServiceAccount: cmp.Or(s.ServiceAccount, account),
	}
	if s.Encryption.Key > 0 && s.Encryption.Key <= math.MaxUint8 {
		base.EncryptionKey = uint8(s.Encryption.Key)
	}
	if s.ID != 0 && node != "" { // informational (spec wire.md §1.7)
		base.Metadata = fmt.Sprintf("cilium-global:default:%s:%d", node, s.ID)
	}
	for _, p := range s.NamedPorts {
		base.NamedPorts = addNamedPort(base.NamedPorts, p.Name, p.Protocol, int32(p.Port))
	}
	var texts []string
	for _, a := range s.Networking.Addressing {
		texts = append(texts, a.IPv4, a.IPv6)
	}
	return pairs(base, texts, []string{s.Networking.NodeIP})
}

// pairs are entries like base for each of the addresses. The host of each is the
// first one of its family, else the first one.
func pairs(base wire.IPIdentityPair, texts, hosts []string) (out []wire.IPIdentityPair) {
	slices.SortFunc(base.NamedPorts, func(a, b wire.NamedPort) int { return strings.Compare(a.Name, b.Name) })
	var seen []netip.Addr
	for _, text := range texts {
		ip, ok := address(text)
		if !ok || slices.Contains(seen, ip) {
			continue
		}
		seen = append(seen, ip)
		p := base
		p.IP = ip.AsSlice()
		if host := hostOf(ip, hosts); host.IsValid() {
			p.HostIP = host.AsSlice()
		}
		out = append(out, p)
	}
	return out
}

func hostOf(ip netip.Addr, hosts []string) (first netip.Addr) {
	for _, text := range hosts {
		host, ok := address(text)
		switch {
		case !ok:
		case host.Is4() == ip.Is4():
			return host
		case !first.IsValid():
			first = host
		}
	}
	return first
}

// addNamedPort adds a port, unless a reader would leave it out or another one has the name.
func addNamedPort(to []wire.NamedPort, name, protocol string, number int32) []wire.NamedPort {
	protocol = strings.ToUpper(cmp.Or(protocol, string(corev1.ProtocolTCP)))
	taken := slices.ContainsFunc(to, func(p wire.NamedPort) bool { return p.Name == name })
	if taken || len(validation.IsValidPortName(name)) > 0 || !knownProtocol(protocol) || number <= 0 || number > math.MaxUint16 {
		return to
	}
	return append(to, wire.NamedPort{Name: name, Port: uint16(number), Protocol: protocol})
}
