package simulate

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mesh-agent/mesh-agent/internal/kube/endpointslices"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/agents"
)

// workload are the operations, which change the description of a cluster as its API server has it. Repeated names are
// more likely.
func workload() []string {
	return []string{"serve", "scale", "scale", "scale", "unserve", "node", "unnode", "pod", "pod", "pod", "pod", "unpod", "unpod", "contested", "contested", "identity", "unidentity"}
}

// Objects are the numbers of objects that a cluster can have. About half of them exist at a time.
type Objects struct {
	Nodes, Services, Pods int
}

// The numbers that are the same for each size: a cluster has few identities and addresses that others claim, too.
const (
	numIdentities = 30
	numContested  = 10
)

// description changes the description of a cluster.
type description struct {
	*rand.Rand
	c   *agents.Cluster
	max Objects
}

// fill makes about half of the objects, as they are at the start.
func (d description) fill() {
	for _, do := range []string{"identity", "node", "serve", "scale", "pod"} {
		for range map[string]int{"identity": numIdentities, "node": d.max.Nodes, "serve": d.max.Services, "scale": d.max.Services, "pod": d.max.Pods}[do] {
			d.do(do)
		}
	}
	d.c.Source.Listed()
}

func (d description) do(operation string) {
	s := d.c.Source
	switch operation {
	case "serve":
		name := d.service()
		uid := types.UID(fmt.Sprint("service-", d.Uint64()))
		if old, is := s.Services.Get(s.Services.Snapshot(), "shop/"+name); is {
			uid = old.UID
		}
		put(s.Services, "shop/"+name, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: uid, Annotations: map[string]string{
				wire.AnnotationGlobal: fmt.Sprint(d.IntN(4) > 0), endpointslices.AnnotationSync: fmt.Sprint(d.IntN(4) > 0),
			}},
			Spec: corev1.ServiceSpec{ClusterIP: "172.20.0.1", ClusterIPs: []string{"172.20.0.1"}, Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
		})
	case "unserve":
		remove(s.Services, "shop/"+d.service())
		d.c.API.Collect()
	case "scale":
		d.scale(d.service())
	case "node":
		name := d.IntN(d.max.Nodes)
		put(s.CiliumNodes, fmt.Sprint("n", name), decoded[local.CiliumNode](fmt.Sprintf(
			`{"metadata": {"name": "n%d"}, "spec": {"addresses": [{"type": "InternalIP", "ip": "172.16.%d.%[1]d"}, {"type": "CiliumInternalIP", "ip": "10.%[2]d.250.%[3]d"}], "ipam": {"podCIDRs": ["10.%[2]d.%[1]d.0/24"]}}}`,
			name, d.c.Own.ID, d.IntN(200))))
	case "unnode":
		remove(s.CiliumNodes, fmt.Sprint("n", d.IntN(d.max.Nodes)))
	case "pod":
		n := d.IntN(d.max.Pods)
		d.pod(fmt.Sprint("p", n), fmt.Sprintf("10.%d.%d.%d", d.c.Own.ID, 200+n/250, n%250))
	case "contested": // several clusters have a pod with this address, or one of them loses it
		n := d.IntN(numContested)
		if name := fmt.Sprint("x", n); d.IntN(2) == 0 {
			d.pod(name, fmt.Sprint("10.99.0.", n))
		} else {
			remove(s.CiliumEndpoints, "shop/"+name)
		}
	case "unpod":
		remove(s.CiliumEndpoints, fmt.Sprint("shop/p", d.IntN(d.max.Pods)))
	case "identity":
		n := d.IntN(numIdentities)
		id := &local.CiliumIdentity{SecurityLabels: map[string]string{
			"k8s:app": fmt.Sprint("a", n), "k8s:io.cilium.k8s.policy.cluster": d.c.Own.Name, "k8s:io.kubernetes.pod.namespace": "shop",
		}}
		id.Name = fmt.Sprint(d.number(n))
		put(s.CiliumIdentities, id.Name, id)
	case "unidentity":
		remove(s.CiliumIdentities, fmt.Sprint(d.number(d.IntN(numIdentities))))
	default:
		panic("no operation is called " + operation)
	}
}

func (d description) pod(name, ip string) {
	put(d.c.Source.CiliumEndpoints, "shop/"+name, decoded[local.CiliumEndpoint](fmt.Sprintf(
		`{"metadata": {"namespace": "shop", "name": %q, "uid": %[1]q, "creationTimestamp": "2026-01-01T00:00:00Z"},
		"status": {"id": 7, "identity": {"id": %d}, "networking": {"addressing": [{"ipv4": %q}], "node": "172.16.%d.%d"}}}`,
		name, d.number(d.IntN(numIdentities)), ip, d.c.Own.ID, d.IntN(d.max.Nodes))))
}

func (d description) service() string { return fmt.Sprint("s", d.IntN(d.max.Services)) }

func (d description) number(n int) int { return int(d.c.Own.ID)<<16 + 256 + n }

// scale gives a service other backends.
func (d description) scale(name string) {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: name + "-1", Labels: map[string]string{wire.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	port, protocol := int32(8080), corev1.ProtocolTCP
	slice.Ports = []discoveryv1.EndpointPort{{Name: new("http"), Port: &port, Protocol: &protocol}}
	for i := range d.IntN(6) {
		ready := true
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprintf("10.%d.%d.%d", d.c.Own.ID, 100+i, d.IntN(250))}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
		})
	}
	put(d.c.Source.EndpointSlices, "shop/"+name+"-1", slice)
}

func put[T any, P local.Object[T]](all *local.Objects[T, P], name string, o *T) {
	old, _ := all.Get(all.Snapshot(), name)
	all.Apply([]store.Change[T]{{Name: name, Old: (*T)(old), New: o}})
}

func remove[T any, P local.Object[T]](all *local.Objects[T, P], name string) {
	if old, is := all.Get(all.Snapshot(), name); is {
		all.Apply([]store.Change[T]{{Name: name, Old: (*T)(old)}})
	}
}

// decoded makes an object of JSON that is right.
func decoded[T any](text string) *T {
	o := new(T)
	if err := json.Unmarshal([]byte(text), o); err != nil {
		panic(err)
	}
	return o
}
