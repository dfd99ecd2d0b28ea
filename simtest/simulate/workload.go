package simulate

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"

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
	return []string{"serve", "scale", "scale", "scale", "unserve", "node", "unnode", "pod", "pod", "pod", "pod", "unpod", "unpod", "rollout", "contested", "contested", "identity", "unidentity", "namespace"}
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
	c    *agents.Cluster
	max  Objects
	asks func(service string) // is called for each Service whose slices an operation decides
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
		d.asks(full(name))
		uid := types.UID(fmt.Sprint("service-", d.Uint64()))
		if old, is := s.Services.Get(s.Services.Snapshot(), full(name)); is {
			uid = old.UID
		}
		put(s.Services, full(name), &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespaceOf(name), Name: name, UID: uid, Annotations: map[string]string{
				wire.AnnotationGlobal: fmt.Sprint(d.IntN(4) > 0), endpointslices.AnnotationSync: fmt.Sprint(d.IntN(4) > 0),
			}},
			Spec: corev1.ServiceSpec{ClusterIP: "172.20.0.1", ClusterIPs: []string{"172.20.0.1"}, Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
		})
	case "unserve":
		name := full(d.service())
		d.asks(name)
		remove(s.Services, name)
		d.c.API.Collect()
	case "scale":
		d.scale(d.service())
	case "node":
		d.node()
	case "unnode":
		name := fmt.Sprint("n", d.IntN(d.max.Nodes))
		remove(s.CiliumNodes, name)
		remove(s.Nodes, name)
	case "pod":
		n := d.IntN(d.max.Pods)
		name, ip := d.podOf(n)
		d.pod(n, name, ip)
	case "rollout":
		if len(d.c.Members) > 0 {
			d.rollout()
		}
	case "contested": // several clusters have a pod with this address, or one of them loses it
		n := d.IntN(numContested)
		if name := fmt.Sprint("x", n); d.IntN(2) == 0 {
			d.pod(n, name, fmt.Sprint("10.99.0.", n))
		} else {
			d.unpod(name)
		}
	case "unpod":
		d.unpod(fmt.Sprint("p", d.IntN(d.max.Pods)))
	case "identity":
		d.identity()
	case "unidentity":
		remove(s.CiliumIdentities, fmt.Sprint(d.number(d.IntN(numIdentities))))
	case "namespace":
		d.namespace()
	default:
		panic("no operation is called " + operation)
	}
}

func (d description) node() {
	if len(d.c.Members) > 0 {
		d.putMember()
		return
	}
	name := d.IntN(d.max.Nodes)
	put(d.c.Source.CiliumNodes, fmt.Sprint("n", name), decoded[local.CiliumNode](fmt.Sprintf(
		`{"metadata": {"name": "n%d"}, "spec": {"addresses": [{"type": "InternalIP", "ip": "172.16.%d.%[1]d"}, {"type": "CiliumInternalIP", "ip": "10.%[2]d.250.%[3]d"}], "ipam": {"podCIDRs": ["10.%[2]d.%[1]d.0/24"]}}}`,
		name, d.c.Own.ID, d.IntN(200))))
}

// identity puts an identity, unless nodes allocate them.
func (d description) identity() {
	n := d.IntN(numIdentities)
	if len(d.c.Members) > 0 {
		return
	}
	id := &local.CiliumIdentity{SecurityLabels: map[string]string{
		"k8s:app": fmt.Sprint("a", n), "k8s:io.cilium.k8s.policy.cluster": d.c.Own.Name, labelNamespace: namespaceOf(fmt.Sprint(n)),
	}}
	id.Name = fmt.Sprint(d.number(n))
	put(d.c.Source.CiliumIdentities, id.Name, id)
}

// depot is a namespace that is global at times, and that is deleted at times. All others are global.
const depot = "depot"

const labelNamespace = "k8s:io.kubernetes.pod.namespace"

// namespaceOf is the namespace of an object that ends with a number: depot has a fifth of them.
func namespaceOf(name string) string {
	if last := name[len(name)-1]; last == '0' || last == '5' {
		return depot
	}
	return "shop"
}

// full is the name of an object with its namespace.
func full(name string) string { return namespaceOf(name) + "/" + name }

// namespace deletes the namespace with its objects, or annotates it.
func (d description) namespace() {
	s := d.c.Source
	for i := range d.max.Services {
		if name := fmt.Sprint("s", i); namespaceOf(name) == depot {
			d.asks(full(name))
		}
	}
	if d.IntN(5) > 0 {
		put(s.Namespaces, depot, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: depot, Annotations: map[string]string{wire.AnnotationGlobalNamespace: fmt.Sprint(d.IntN(3) > 0)},
		}})
		return
	}
	removeAll(s.CiliumEndpoints)
	removeAll(s.Pods)
	removeAll(s.EndpointSlices)
	removeAll(s.Services)
	remove(s.Namespaces, depot)
}

// removeAll deletes the objects of depot.
func removeAll[T any, P local.Object[T]](all *local.Objects[T, P]) {
	for _, o := range slices.Collect(all.InNamespace(all.Snapshot(), depot)) {
		remove(all, local.Name(o))
	}
}

// isGlobal reports whether a cluster shares the objects of a namespace.
func isGlobal(c *agents.Cluster, namespace string) bool {
	n, is := c.Source.Namespaces.Get(c.Source.Namespaces.Snapshot(), namespace)
	return !is || n.Annotations[wire.AnnotationGlobalNamespace] != "false"
}

// podOf returns the name and the address of the pod of this number.
func (d description) podOf(n int) (name, ip string) {
	return fmt.Sprint("p", n), fmt.Sprintf("10.%d.%d.%d", d.c.Own.ID, 200+n/250, n%250)
}

// pod puts the pod of this number.
func (d description) pod(n int, name, ip string) {
	if len(d.c.Members) > 0 {
		d.putMemberPod(name, ip, d.appOf(n))
		return
	}
	number := 5 * d.IntN(numIdentities/5)
	if namespaceOf(name) != depot {
		number += 1 + d.IntN(4)
	}
	put(d.c.Source.CiliumEndpoints, full(name), decoded[local.CiliumEndpoint](fmt.Sprintf(
		`{"metadata": {"namespace": %[6]q, "name": %[1]q, "uid": %[1]q, "creationTimestamp": "2026-01-01T00:00:00Z"},
		"status": {"id": 7, "identity": {"id": %[2]d}, "networking": {"addressing": [{"ipv4": %[3]q}], "node": "172.16.%[4]d.%[5]d"}}}`,
		name, d.number(number), ip, d.c.Own.ID, d.IntN(d.max.Nodes), namespaceOf(name))))
}

func (d description) unpod(name string) {
	remove(d.c.Source.CiliumEndpoints, full(name))
	remove(d.c.Source.Pods, full(name))
}

func (d description) service() string { return fmt.Sprint("s", d.IntN(d.max.Services)) }

func (d description) number(n int) int { return int(d.c.Own.ID)<<16 + 256 + n }

// scale gives a service other backends.
func (d description) scale(name string) {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: namespaceOf(name), Name: name + "-1", Labels: map[string]string{wire.LabelServiceName: name}},
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
	put(d.c.Source.EndpointSlices, full(name)+"-1", slice)
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
