package converters

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mesh-agent/mesh-agent/test/interop"
)

// object is a Kubernetes object, as JSON.
type object map[string]any

func (o object) text(t *testing.T) string {
	t.Helper()
	text, err := json.Marshal(o)
	interop.Must(t, err)
	return string(text)
}

// maker makes random objects that an API server accepts. Objects with the same number have the same name each time, and
// may have other contents.
type maker struct{ *rand.Rand }

func newMaker(seed uint64) maker { return maker{rand.New(rand.NewPCG(seed, 0))} }

// objects are those with a number, of every kind.
func (m maker) objects(i int) []object {
	all := []object{m.node(i), m.identity(i), m.endpoint(i)}
	service, slices := m.service(i)
	return append(append(all, service), slices...)
}

// meta is the metadata of an object: its name, and sometimes labels and annotations.
func (m maker) meta(namespace, name string, labels, annotations object) object {
	meta := object{"name": name, "labels": labels, "annotations": annotations}
	if namespace != "" {
		meta["namespace"] = namespace
	}
	return meta
}

func (m maker) namespace() string { return one(m, "shop", "shop", "global", "local", "odd") }

func one[T any](m maker, of ...T) T { return of[m.IntN(len(of))] }

// some returns up to n results of make.
func some[T any](m maker, n int, make func(i int) T) []T {
	all := []T{}
	for i := range m.IntN(n + 1) {
		all = append(all, make(i))
	}
	return all
}

// pairs are labels or annotations.
func (m maker) pairs() object {
	all := object{}
	for range m.IntN(4) {
		all[one(m, "app", "team", "example.com/a", "topology.kubernetes.io/zone", "x-y_z.0")] = one(m, "", "a", "B-1", "1.0")
	}
	return all
}

func (m maker) node(i int) object {
	address := func(n int) object {
		return object{
			"type": one(m, "InternalIP", "ExternalIP", "CiliumInternalIP", "InternalDNS", "Hostname"),
			"ip":   one(m, fmt.Sprintf("192.168.%d.%d", i%250, n+1), fmt.Sprintf("fd00:%x::%x", i, n+1), fmt.Sprintf("FD00:%X::AB%d", i, n), "a.name", ""),
		}
	}
	network := func(n int) string {
		return one(m, fmt.Sprintf("10.%d.%d.0/24", i%200, n), fmt.Sprintf("fd10:%x:%x::/112", i, n), fmt.Sprintf("10.%d.%d.9/24", i%200, n))
	}
	pool := func(n int) object { return object{"pool": fmt.Sprint("pool-", n), "cidrs": some(m, 3, network)} }
	annotations := m.pairs()
	if m.IntN(2) == 0 {
		annotations[one(m, "network.cilium.io/wg-pub-key", "io.cilium.network.wg-pub-key")] = one(m, "a2V5", "b3RoZXI=")
	}
	spec := object{
		"addresses": some(m, 4, address), "bootid": one(m, "", "b1"), "encryption": object{"key": m.IntN(16)},
		"health":  object{"ipv4": one(m, "", "10.1.1.1"), "ipv6": one(m, "", "fd00::1")},
		"ingress": object{"ipv4": one(m, "", "10.1.1.2"), "ipv6": one(m, "", "fd00::2")},
		"ipam":    object{"podCIDRs": some(m, 4, network), "pools": object{"allocated": some(m, 2, pool)}},
	}
	return object{"apiVersion": "cilium.io/v2", "kind": "CiliumNode", "metadata": m.meta("", fmt.Sprint("random-", i), m.pairs(), annotations), "spec": spec}
}

// number is the one of the i-th identity.
func number(i int) int { return clusterID<<16 + 1000 + i }

func (m maker) identity(i int) object {
	labels := object{"k8s:io.cilium.k8s.policy.cluster": cluster, "k8s:io.kubernetes.pod.namespace": m.namespace()}
	for range 1 + m.IntN(4) {
		labels[one(m, "k8s:app", "k8s:example.com/a", "container:a", "k8s:a:b", "any:x", "k8s:io.cilium.k8s.namespace.labels.team")] = one(m, "", "a", "b=c", "d;e", "f,g")
	}
	return object{"apiVersion": "cilium.io/v2", "kind": "CiliumIdentity", "metadata": m.meta("", fmt.Sprint(number(i)), nil, nil), "security-labels": labels}
}

func (m maker) endpoint(i int) object {
	pair := func(n int) object {
		four, six := fmt.Sprintf("10.210.%d.%d", i%250, n+1), fmt.Sprintf("fd21:%x::%x", i, n+1)
		return one(m, object{"ipv4": four}, object{"ipv6": six}, object{"ipv4": four, "ipv6": six}, object{})
	}
	port := func(n int) object {
		return object{"name": fmt.Sprint("port-", n), "port": one(m, 1, 80, 65535), "protocol": one(m, "TCP", "UDP", "SCTP")}
	}
	status := object{"named-ports": some(m, 3, port), "identity": object{"id": number(i)}}
	if m.IntN(8) > 0 {
		status["networking"] = object{"addressing": some(m, 3, pair), "node": one(m, "192.168.0.1", "fd00::1", "")}
	}
	if m.IntN(2) > 0 {
		status["encryption"] = object{"key": m.IntN(16)}
	}
	return object{"apiVersion": "cilium.io/v2", "kind": "CiliumEndpoint", "metadata": m.meta([]string{"shop", "global"}[i%2], fmt.Sprint("random-", i), m.pairs(), nil), "status": status}
}

// truth is a value for a flag.
func (m maker) truth() string { return one(m, "true", "true", "True", "false", "1", "yes", "") }

// service returns a Service, with its slices, in a namespace that depends on the number.
func (m maker) service(i int) (service object, slices []object) {
	namespace, name := []string{"shop", "global", "local", "odd", "shop"}[i%5], fmt.Sprint("random-", i)
	annotations := m.pairs()
	for _, key := range []string{"service.cilium.io/global", "service.cilium.io/global", "service.cilium.io/shared", "io.cilium/global-service", "io.cilium/shared-service", "service.cilium.io/affinity"} {
		if m.IntN(3) == 0 {
			annotations[key] = m.truth()
		}
	}
	labels := m.pairs()
	if m.IntN(8) == 0 {
		labels[one(m, "service.kubernetes.io/headless", "service.kubernetes.io/service-proxy-name")] = one(m, "", "other")
	}
	ports := some(m, 3, func(n int) object {
		return object{"name": fmt.Sprint("port-", n), "port": 80 + n, "protocol": one(m, "TCP", "UDP", "SCTP"), "targetPort": one[any](m, 8080, "http")}
	})
	if len(ports) == 0 {
		ports = append(ports, object{"port": 80})
	}
	spec := object{"ports": ports, "selector": m.pairs(), "ipFamilyPolicy": "SingleStack"}
	if i%3 == 0 { // it cannot change
		spec["clusterIP"] = "None"
	}
	service = object{"apiVersion": "v1", "kind": "Service", "metadata": m.meta(namespace, name, labels, annotations), "spec": spec}
	for n := range m.IntN(4) {
		slices = append(slices, m.slice(namespace, name, i, n))
	}
	return service, slices
}

func (m maker) slice(namespace, service string, i, n int) object {
	family := []string{"IPv4", "IPv6"}[(i+n)%2] // it cannot change
	endpoint := func(k int) object {
		e := object{"addresses": []string{map[string]string{
			"IPv4": fmt.Sprintf("10.220.%d.%d", i%250, 10*n+k+1), "IPv6": fmt.Sprintf("fd22:%x:%x::%x", i+1, n+1, k+1),
		}[family]}}
		if m.IntN(4) > 0 {
			conditions := object{}
			for _, name := range []string{"ready", "serving", "terminating"} {
				if m.IntN(3) > 0 {
					conditions[name] = m.IntN(2) == 0
				}
			}
			if conditions["ready"] == false && conditions["serving"] == nil { // see disputed
				conditions["serving"] = m.IntN(2) == 0
			}
			e["conditions"] = conditions
		}
		if m.IntN(2) == 0 {
			e["zone"] = one(m, "a", "b")
			e["hints"] = object{"forZones": some(m, 2, func(n int) object { return object{"name": []string{"a", "b"}[n]} })}
		}
		if m.IntN(4) == 0 {
			e["hostname"] = fmt.Sprint("host-", k)
		}
		if m.IntN(2) == 0 {
			e["nodeName"] = "full"
		}
		if m.IntN(4) == 0 {
			e["targetRef"] = object{"kind": "Pod", "namespace": namespace, "name": fmt.Sprint("pod-", k), "uid": "u"}
		}
		return e
	}
	port := func(k int) object {
		p := object{"name": fmt.Sprint("port-", k), "protocol": one(m, "TCP", "UDP", "SCTP")}
		if m.IntN(6) > 0 {
			p["port"] = 8080 + k
		}
		if m.IntN(4) == 0 {
			p["appProtocol"] = "kubernetes.io/h2c"
		}
		return p
	}
	labels := m.pairs()
	if (i+n)%10 > 0 { // the owner does not change
		labels["kubernetes.io/service-name"] = service
	}
	if (i+2*n)%4 == 0 {
		labels["endpointslice.kubernetes.io/managed-by"] = []string{"endpointslice-controller.k8s.io", "endpointslice-mesh-controller.cilium.io"}[i/4%2]
	}
	return object{
		"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": m.meta(namespace, fmt.Sprint(service, "-", n), labels, m.pairs()),
		"addressType": family, "ports": some(m, 3, port), "endpoints": some(m, 5, endpoint),
	}
}
