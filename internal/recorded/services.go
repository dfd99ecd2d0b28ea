package recorded

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Service is a recorded service with its objects.
type Service struct {
	Vector
	Cluster wire.ClusterInfo
	Service *corev1.Service
	Slices  []*discoveryv1.EndpointSlice
}

// ServicesOf are the services. No writer gives the vectors 7 (shared=false), 8
// (maps that are null) and 11 (a port that is null), so they are not among them.
func ServicesOf(t testing.TB) (out []Service) {
	t.Helper()
	all := Vectors(t, Services)
	for i, c := range map[int]struct {
		cluster wire.ClusterInfo
		service string
		slices  []string
	}{
		0: {
			service: `
metadata: {namespace: default, name: rebel-base, labels: {app: rebel}, annotations: {service.cilium.io/global: "true"}}
spec: {clusterIP: 10.102.1.1, clusterIPs: [10.102.1.1], selector: {name: rebel-base}, ports: [{name: http, port: 80, protocol: TCP}]}`,
			slices: []string{`
metadata: {name: rebel-base-1}
addressType: IPv4
endpoints: [{addresses: [10.2.0.11], conditions: {ready: true}}, {addresses: [10.2.0.12], conditions: {ready: true}}]
ports: [{name: http, port: 8080, protocol: TCP}]`},
		},
		1: {
			service: `
metadata: {namespace: default, name: unnamed-port}
spec: {clusterIP: 10.102.1.2, ports: [{port: 80}]}`,
			slices: []string{`
metadata: {name: unnamed-port-1}
addressType: IPv4
endpoints: [{addresses: [10.2.0.13]}]
ports: [{name: "", port: 80}]`},
		},
		2: {
			service: `
metadata: {namespace: prod, name: v6}
spec: {clusterIPs: ["fd00:102::1"], ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53, protocol: TCP}]}`,
			slices: []string{`
metadata: {name: v6-1}
addressType: IPv6
endpoints: [{addresses: ["fd02::11"]}]
ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53, protocol: TCP}]`},
		},
		3: {
			service: `
metadata: {namespace: prod, name: dual}
spec: {clusterIP: 10.102.1.3, clusterIPs: [10.102.1.3, "fd00:102::3"], ports: [{name: sctp, port: 9000, protocol: SCTP}]}`,
			slices: []string{`
metadata: {name: dual-4}
addressType: IPv4
endpoints: [{addresses: [10.2.0.14]}]
ports: [{name: sctp, port: 9000, protocol: SCTP}]`, `
metadata: {name: dual-6}
addressType: IPv6
endpoints: [{addresses: ["fd02::14"]}]
ports: [{name: sctp, port: 9000, protocol: SCTP}]`},
		},
		4: {
			service: `
metadata: {namespace: prod, name: headless, labels: {service.kubernetes.io/headless: ""}}
spec: {clusterIP: None, clusterIPs: [None], ports: [{name: db, port: 5432}]}`,
			slices: []string{`
metadata: {name: headless-1}
addressType: IPv4
endpoints: [{addresses: [10.2.0.15], hostname: db-0}]
ports: [{name: db, port: 5432, protocol: TCP}]`},
		},
		5: {
			service: `
metadata: {namespace: prod, name: zones}
spec: {clusterIP: 10.102.1.4, ports: [{name: http, port: 80}]}`,
			slices: []string{`
metadata: {name: zones-1}
addressType: IPv4
endpoints:
- {addresses: [10.2.0.16], zone: eu-a, hints: {forZones: [{name: eu-a}, {name: eu-b}]}}
- {addresses: [10.2.0.17], zone: eu-b}
ports: [{name: http, port: 80, protocol: TCP}]`},
		},
		6: {service: "metadata: {namespace: prod, name: nobackends}"},
		9: {
			cluster: Widest(),
			service: strings.NewReplacer("NS", strings.Repeat("n", 63), "NAME", strings.Repeat("s", 63), "PORT", strings.Repeat("p", 15)).Replace(`
metadata: {namespace: NS, name: NAME, labels: {odd: "a=b;c<d>&e"}}
spec: {clusterIP: 255.255.255.255, ports: [{name: PORT, port: 65535, protocol: TCP}]}`),
			slices: []string{strings.ReplaceAll(`
metadata: {name: widest-1}
addressType: IPv6
endpoints: [{addresses: ["ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"]}]
ports: [{name: PORT, port: 65535, protocol: UDP}]`, "PORT", strings.Repeat("p", 15))},
		},
		10: {
			service: `
metadata: {namespace: prod, name: multiport}
spec: {clusterIP: 10.102.1.9, ports: [{name: a, port: 80}, {name: b, port: 81}]}`,
			slices: []string{`
metadata: {name: multiport-1}
addressType: IPv4
endpoints: [{addresses: [10.2.0.19]}]
ports: [{name: a, port: 8080}, {name: b, port: 8080}]`},
		},
	} {
		if c.cluster.ID == 0 {
			c.cluster = Cluster2()
		}
		s := Service{Vector: all[i], Cluster: c.cluster, Service: Object[corev1.Service](t, c.service)}
		for _, text := range c.slices {
			s.Slices = append(s.Slices, Object[discoveryv1.EndpointSlice](t, text))
		}
		out = append(out, s)
	}
	return out
}
