package publish

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/yaml"

	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// vector is a recorded key with its value.
type vector struct {
	Key, Note    string
	Base64       []byte `json:"value_base64"`
	Uncompressed []byte `json:"uncompressed_base64"`
}

// vectors reads those of a file.
func vectors(t *testing.T, file string) []vector {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "golden", file))
	must(t, err)
	var all []vector
	must(t, json.Unmarshal(data, &all))
	return all
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// object reads an object from YAML.
func object[T any](t *testing.T, text string) *T {
	t.Helper()
	o := new(T)
	must(t, yaml.UnmarshalStrict([]byte(text), o))
	return o
}

// published is a value to write.
type published interface {
	Key() string
	Encode() []byte
}

func compare(t *testing.T, got published, v vector, replace ...string) {
	t.Helper()
	if got.Key() != v.Key {
		t.Errorf("the key is %s, want %s", got.Key(), v.Key)
	}
	want := strings.NewReplacer(replace...).Replace(string(v.Base64))
	if want == string(v.Base64) && len(replace) > 0 {
		t.Errorf("%q is not in the vector", replace[0])
	}
	if d := cmp.Diff(want, string(got.Encode())); d != "" {
		t.Errorf("the value (-want +got):\n%s", d)
	}
}

func cluster2() wire.ClusterInfo {
	return wire.ClusterInfo{Name: "cluster2", ID: 2, MaxConnectedClusters: 255}
}

// widest is the cluster of the vectors with maximum lengths.
func widest() wire.ClusterInfo {
	return wire.ClusterInfo{Name: strings.Repeat("c", 32), ID: 255, MaxConnectedClusters: 255}
}

// No writer gives the vectors 7 (shared=false), 8 (maps that are null) and 11 (a
// port that is null).
func TestGoldenServicesArePublishedAsCiliumDoes(t *testing.T) {
	t.Parallel()
	all := vectors(t, "services.json")
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
			cluster: widest(),
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
		t.Run(all[i].Note, func(t *testing.T) {
			t.Parallel()
			if c.cluster.ID == 0 {
				c.cluster = cluster2()
			}
			var slices []*discoveryv1.EndpointSlice
			for _, text := range c.slices {
				slices = append(slices, object[discoveryv1.EndpointSlice](t, text))
			}
			compare(t, Service(c.cluster, object[corev1.Service](t, c.service), slices), all[i])
		})
	}
}

func TestGoldenEndpointSlicesArePublishedAsCiliumDoes(t *testing.T) {
	t.Parallel()
	all := vectors(t, "endpointslices.json")
	hundred := strings.Builder{}
	hundred.WriteString("metadata: {namespace: default, name: hundred}\naddressType: IPv4\nports: [{name: http, port: 80, protocol: TCP}]\nendpoints:\n")
	for i := range 100 {
		hundred.WriteString(strings.ReplaceAll("- {addresses: [10.2.1.LAST], conditions: {ready: true}, nodeName: node1}\n", "LAST", strconv.Itoa(i)))
	}
	for i, text := range []string{
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
	} {
		t.Run(all[i].Note, func(t *testing.T) {
			t.Parallel()
			cluster := cluster2()
			if i == 8 {
				cluster = widest()
			}
			s := EndpointSlice(cluster, object[discoveryv1.EndpointSlice](t, text))
			if s.Key() != all[i].Key {
				t.Errorf("the key is %s, want %s", s.Key(), all[i].Key)
			}
			r, err := zstd.NewReader(nil)
			must(t, err)
			defer r.Close()
			message, err := r.DecodeAll(s.Encode(), nil)
			must(t, err)
			if d := cmp.Diff(all[i].Uncompressed, message); d != "" {
				t.Errorf("the message (-want +got):\n%s", d)
			}
		})
	}
	if len(all) != 9 {
		t.Errorf("%d vectors", len(all))
	}
}

// The vectors were made of values, and some say null for no ports; a writer has a
// list, which may be empty.
func TestGoldenServiceExportsArePublishedAsCiliumDoes(t *testing.T) {
	t.Parallel()
	noPorts := []string{`"ports":null`, `"ports":[]`}
	all := vectors(t, "serviceexports.json")
	created := `creationTimestamp: "2026-03-04T05:06:07Z"`
	for i, c := range []struct {
		cluster         wire.ClusterInfo
		export, service string
		replace         []string
	}{
		{
			export:  "metadata: {namespace: default, name: web, labels: {not: exported}, CREATED}",
			service: `spec: {clusterIP: 10.0.0.1, sessionAffinity: None, ports: [{name: http, protocol: TCP, port: 80, targetPort: 8080, nodePort: 30080}]}`,
		},
		{
			export:  "metadata: {namespace: default, name: hl, CREATED}",
			service: `spec: {clusterIP: None, ipFamilies: [IPv4, IPv6], ports: [{name: db, protocol: TCP, port: 5432, appProtocol: http}]}`,
		},
		{
			export:  "metadata: {namespace: default, name: sticky, CREATED}",
			service: `spec: {clusterIP: 10.0.0.1, sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 10800}}}`,
		},
		{
			export:  "{metadata: {namespace: default, name: annotated, CREATED}, spec: {exportedLabels: {l: \"2\"}, exportedAnnotations: {a: \"1\"}}}",
			replace: noPorts,
		},
		{
			export:  "metadata: {namespace: default, name: itp, CREATED}",
			service: `spec: {internalTrafficPolicy: Local, trafficDistribution: PreferClose}`,
			replace: noPorts,
		},
		{
			export:  "metadata: {namespace: default, name: itp2, CREATED}",
			service: `spec: {internalTrafficPolicy: Cluster, trafficDistribution: PreferSameZone, ipFamilies: [IPv6]}`,
			replace: noPorts,
		},
		{
			export:  "metadata: {namespace: default, name: multi, CREATED}",
			service: `spec: {ports: [{name: a, protocol: TCP, port: 1}, {name: b, protocol: UDP, port: 53}, {protocol: SCTP, port: 65535}]}`,
		},
		{
			cluster: widest(),
			export: strings.NewReplacer("NS", strings.Repeat("n", 63), "NAME", strings.Repeat("s", 63)).
				Replace(`metadata: {namespace: NS, name: NAME, creationTimestamp: "2026-03-04T05:06:07+02:00"}`),
			replace: noPorts,
		},
	} {
		t.Run(all[i].Note, func(t *testing.T) {
			t.Parallel()
			if c.cluster.ID == 0 {
				c.cluster = cluster2()
			}
			export := object[local.ServiceExport](t, strings.ReplaceAll(c.export, "CREATED", created))
			compare(t, ServiceExport(c.cluster, export, object[corev1.Service](t, c.service)), all[i], c.replace...)
		})
	}
	if len(all) != 8 {
		t.Errorf("%d vectors", len(all))
	}
}

// The vectors were made of values; where they say something of the source or the
// annotations that the object cannot say, the rest is compared.
func TestGoldenNodesArePublishedAsCiliumDoes(t *testing.T) {
	t.Parallel()
	all := vectors(t, "nodes.json")
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
			cluster: widest(),
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
		t.Run(all[i].Note, func(t *testing.T) {
			t.Parallel()
			if c.cluster.ID == 0 {
				c.cluster = cluster2()
			}
			n, err := CiliumNode(c.cluster, object[local.CiliumNode](t, c.node))
			must(t, err)
			compare(t, n, all[i], c.replace...)
		})
	}
	if len(all) != 10 {
		t.Errorf("%d vectors", len(all))
	}
}
