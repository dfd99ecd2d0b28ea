package recorded

import (
	"strconv"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// EndpointSlice is a recorded slice with its object.
type EndpointSlice struct {
	Vector
	Cluster wire.ClusterInfo
	Slice   *discoveryv1.EndpointSlice
}

// EndpointSlicesOf are the slices.
func EndpointSlicesOf(t testing.TB) (out []EndpointSlice) {
	t.Helper()
	all := Vectors(t, EndpointSlices)
	for i, text := range sliceTexts() {
		s := EndpointSlice{Vector: all[i], Cluster: Cluster2(), Slice: Object[discoveryv1.EndpointSlice](t, text)}
		if i == 8 {
			s.Cluster = Widest()
		}
		out = append(out, s)
	}
	if len(all) != len(out) {
		t.Errorf("%d vectors and %d objects", len(all), len(out))
	}
	return out
}

func sliceTexts() []string {
	hundred := strings.Builder{}
	hundred.WriteString("metadata: {namespace: default, name: hundred}\naddressType: IPv4\nports: [{name: http, port: 80, protocol: TCP}]\nendpoints:\n")
	for i := range 100 {
		hundred.WriteString(strings.ReplaceAll("- {addresses: [10.2.1.LAST], conditions: {ready: true}, nodeName: node1}\n", "LAST", strconv.Itoa(i)))
	}
	return []string{
		`
metadata: {namespace: default, name: web-abcde, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
endpoints:
- addresses: [10.2.0.11]
  conditions: {ready: true, serving: true, terminating: false}
  nodeName: node1
  zone: eu-a
  targetRef: {kind: Pod, namespace: default, name: web-0}
ports: [{name: http, port: 8080, protocol: TCP}]`,
		`
metadata: {namespace: default, name: web-v6}
addressType: IPv6
endpoints: [{addresses: ["fd02::11", "fd02::12"]}]
ports: [{name: "", port: 53, protocol: UDP}]`,
		`
metadata: {namespace: default, name: empty}
addressType: IPv4`,
		`
metadata: {namespace: default, name: hints}
addressType: IPv4
endpoints: [{addresses: [10.2.0.12], hostname: db-0, zone: eu-a, hints: {forZones: [{name: eu-a}, {name: eu-b}]}}]`,
		`
metadata: {namespace: default, name: nilport}
addressType: IPv4
ports: [{}, {name: s, port: 65535, protocol: SCTP, appProtocol: kubernetes.io/h2c}]`,
		`
metadata: {namespace: default, name: meta, labels: {a: "1", b: "2", odd: "x=y;z"}, annotations: {nl: "a\nb", service.cilium.io/weight: "50"}}
addressType: IPv4`,
		`
metadata: {namespace: default, name: topo}
addressType: IPv4
endpoints:
- {addresses: [10.2.0.13], conditions: {ready: false, serving: true, terminating: true}, deprecatedTopology: {kubernetes.io/hostname: node1}}`,
		hundred.String(),
		strings.NewReplacer("NS", strings.Repeat("n", 63), "NAME", strings.Repeat("s", 253)).Replace(`
metadata: {namespace: NS, name: NAME}
addressType: IPv6`),
	}
}
