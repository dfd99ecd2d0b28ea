package converters

import (
	"fmt"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// objects returns objects of every kind, in the shapes that they have in real clusters.
func objects() []string {
	var all []string
	for _, texts := range [][]string{namespaces(), nodes(), identities(), endpoints(), services(), endpointSlices()} {
		all = append(all, texts...)
	}
	return all
}

func namespaces() []string {
	return []string{
		"{apiVersion: v1, kind: Namespace, metadata: {name: shop}}",
		"{apiVersion: v1, kind: Namespace, metadata: {name: local, annotations: {clustermesh.cilium.io/global: \"false\"}}}",
		"{apiVersion: v1, kind: Namespace, metadata: {name: global, annotations: {clustermesh.cilium.io/global: \"true\"}}}",
		"{apiVersion: v1, kind: Namespace, metadata: {name: odd, annotations: {clustermesh.cilium.io/global: \"yes\"}}}",
	}
}

// node is a CiliumNode with the contents of its spec.
func node(name, spec string) string {
	return fmt.Sprintf("{apiVersion: cilium.io/v2, kind: CiliumNode, metadata: {name: %s}, spec: {%s}}", name, spec)
}

func nodes() []string {
	const address = "addresses: [{type: InternalIP, ip: 192.168.0.1}]"
	return []string{
		`
apiVersion: cilium.io/v2
kind: CiliumNode
metadata:
  name: full
  labels: {kubernetes.io/hostname: full, topology.kubernetes.io/zone: a}
  annotations: {network.cilium.io/wg-pub-key: "Z2l2ZW4=", other: x}
spec:
  bootid: 3f1a
  addresses:
  - {type: InternalIP, ip: 192.168.0.2}
  - {type: InternalIP, ip: "fd00::2"}
  - {type: ExternalIP, ip: 203.0.113.2}
  - {type: CiliumInternalIP, ip: 10.1.0.1}
  - {type: CiliumInternalIP, ip: "fd01::1"}
  encryption: {key: 3}
  health: {ipv4: 10.1.0.9, ipv6: "fd01::9"}
  ingress: {ipv4: 10.1.0.8, ipv6: "fd01::8"}
  ipam: {podCIDRs: [10.1.0.0/24, "fd01::/112"]}
`,
		node("empty", ""),
		node("pools", address+", ipam: {pools: {allocated: [{pool: a, cidrs: [10.2.0.0/27, 'fd02::/120']}, {pool: b, cidrs: [10.2.1.0/27, 10.2.2.0/27]}], requested: [{pool: a, needed: {ipv4-addrs: 8}}]}}"),
		node("both", address+", ipam: {podCIDRs: [10.3.0.0/24], pools: {allocated: [{pool: a, cidrs: [10.3.1.0/27]}]}}"),
		node("many", address+", ipam: {podCIDRs: [10.4.0.0/24, 10.4.1.0/24, 'fd04::/112', 10.4.2.0/24, 'fd04:1::/112']}"),
		node("host-bits", address+", ipam: {podCIDRs: [10.6.0.7/24]}"),
		node("host-name", "addresses: [{type: Hostname, ip: some.name}, {type: InternalIP, ip: 192.168.0.7}]"),
		node("bad-health", address+", health: {ipv4: nonsense}, ingress: {ipv6: '1.2.3'}"),
		node("only-six", "addresses: [{type: InternalIP, ip: 'fd00::8'}], ipam: {podCIDRs: ['fd08::/112']}"),
		node("mapped", "addresses: [{type: InternalIP, ip: '::ffff:192.168.0.9'}]"),
		node("twice", "addresses: [{type: InternalIP, ip: 192.168.0.10}, {type: InternalIP, ip: 192.168.0.10}]"),
		node("leading-zero", "addresses: [{type: InternalIP, ip: 192.168.000.011}]"),
		`{apiVersion: cilium.io/v2, kind: CiliumNode, metadata: {name: old-key, annotations: {io.cilium.network.wg-pub-key: "b2xk"}}, spec: {` + address + `}}`,
		`{apiVersion: cilium.io/v2, kind: CiliumNode, metadata: {name: two-keys, annotations: {io.cilium.network.wg-pub-key: "b2xk", network.cilium.io/wg-pub-key: "bmV3"}}, spec: {` + address + `}}`,
		node("a.name.with.dots", address),
	}
}

// identity is a CiliumIdentity with labels.
func identity(name, labels string) string {
	return fmt.Sprintf("{apiVersion: cilium.io/v2, kind: CiliumIdentity, metadata: {name: %q}, security-labels: {%s}}", name, labels)
}

func identities() []string {
	const pod = `"k8s:io.cilium.k8s.policy.cluster": east, "k8s:io.kubernetes.pod.namespace": `
	return []string{
		identity("196701", pod+"shop, 'k8s:app': web"),
		identity("196702", pod+"global, 'k8s:app': web"),
		identity("196703", pod+"local, 'k8s:app': web"),
		identity("196704", pod+"odd, 'k8s:app': web"),
		identity("196706", pod+"shop, 'k8s:empty': '', 'k8s:with=equals': 'a=b', 'k8s:semi': 'a;b'"),
		identity("196707", pod+"shop, 'k8s:a:b': c, 'container:x': 'b', 'plain': 'c'"),
		identity("196708", pod+"shop, 'k8s:io.cilium.k8s.namespace.labels.kubernetes.io/metadata.name': shop, 'k8s:io.cilium.k8s.policy.serviceaccount': default"),
	}
}

// endpoint is a CiliumEndpoint with the contents of its status.
func endpoint(namespace, name, status string) string {
	return fmt.Sprintf("{apiVersion: cilium.io/v2, kind: CiliumEndpoint, metadata: {namespace: %s, name: %s}, status: {%s}}", namespace, name, status)
}

func endpoints() []string {
	return []string{
		endpoint("shop", "four", "identity: {id: 196701}, networking: {node: 192.168.0.1, addressing: [{ipv4: 10.1.0.20}]}"),
		endpoint("shop", "dual", "identity: {id: 196701}, encryption: {key: 3}, networking: {node: 'fd00::2', addressing: [{ipv4: 10.1.0.21, ipv6: 'fd01::21'}]}"),
		endpoint("shop", "pairs", "identity: {id: 196701}, networking: {node: 192.168.0.1, addressing: [{ipv4: 10.1.0.22}, {ipv6: 'FD01::22'}, {ipv4: 10.1.0.23}]}"),
		endpoint("shop", "ports", "identity: {id: 196706}, named-ports: [{name: dns, port: 53, protocol: UDP}, {name: http, port: 80, protocol: TCP}], networking: {node: 192.168.0.1, addressing: [{ipv4: 10.1.0.24}]}"),
		endpoint("shop", "without-node", "identity: {id: 196701}, networking: {addressing: [{ipv4: 10.1.0.25}]}"),
		endpoint("shop", "without-network", "identity: {id: 196701}"),
		endpoint("shop", "account", "identity: {id: 196708}, service-account: default, networking: {node: 192.168.0.1, addressing: [{ipv4: 10.1.0.26}]}"),
		endpoint("local", "one", "identity: {id: 196703}, networking: {node: 192.168.0.1, addressing: [{ipv4: 10.1.0.30}]}"),
		endpoint("global", "one", "identity: {id: 196702}, networking: {node: 192.168.0.1, addressing: [{ipv4: 10.1.0.31}]}"),
		endpoint("odd", "one", "identity: {id: 196704}, networking: {node: 192.168.0.1, addressing: [{ipv4: 10.1.0.32}]}"),
	}
}

// group returns a CiliumEndpointSlice with the contents of a CiliumEndpoint.
func group(o object) object {
	meta, member := o["metadata"].(map[string]any), object{"encryption": object{}, "networking": object{"addressing": []string{}}}
	status, _ := o["status"].(map[string]any)
	for field, v := range status {
		member[field] = v
	}
	member["name"] = meta["name"]
	if identity, is := member["identity"].(map[string]any); is {
		member["id"] = identity["id"]
	}
	delete(member, "identity")
	return object{
		"apiVersion": "cilium.io/v2alpha1", "kind": "CiliumEndpointSlice", "metadata": object{"name": fmt.Sprint(meta["namespace"], "-", meta["name"])},
		"namespace": meta["namespace"], "endpoints": []object{member},
	}
}

// export is the ServiceExport of a Service, whose annotations it exports.
func export(service object) object {
	meta, spec := service["metadata"].(map[string]any), object{"exportedLabels": object{"exported": "yes"}}
	for from, to := range map[string]string{"labels": "exportedLabels", "annotations": "exportedAnnotations"} {
		if has, _ := meta[from].(map[string]any); len(has) > 0 {
			spec[to] = has
		}
	}
	return object{
		"apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceExport",
		"metadata": object{"namespace": meta["namespace"], "name": meta["name"]}, "spec": spec,
	}
}

// service is a Service with the contents of its metadata, in addition to its names, and of its spec.
func service(namespace, name, metadata, spec string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: Service, metadata: {namespace: %s, name: %s, %s}, spec: {%s}}", namespace, name, metadata, spec)
}

func services() []string {
	const global = "annotations: {service.cilium.io/global: 'true'}"
	const port = "ports: [{port: 80}]"
	return []string{
		service("shop", "web", global+", labels: {team: a, service.kubernetes.io/topology: x}", "selector: {app: web}, clusterIP: 10.96.0.10, ports: [{name: http, port: 80}, {name: dns, port: 53, protocol: UDP}]"),
		service("shop", "no-annotation", "labels: {a: b}", "clusterIP: 10.96.0.11, "+port),
		service("shop", "not-shared", "annotations: {service.cilium.io/global: 'true', service.cilium.io/shared: 'false'}", "clusterIP: 10.96.0.12, "+port),
		service("shop", "shared-alone", "annotations: {service.cilium.io/shared: 'true'}", "clusterIP: 10.96.0.13, "+port),
		service("shop", "old-annotation", "annotations: {io.cilium/global-service: 'true'}", "clusterIP: 10.96.0.14, "+port),
		service("shop", "old-not-shared", "annotations: {io.cilium/global-service: 'true', io.cilium/shared-service: 'false'}", "clusterIP: 10.96.0.15, "+port),
		service("shop", "in-capitals", "annotations: {service.cilium.io/global: 'True'}", "clusterIP: 10.96.0.16, "+port),
		service("shop", "says-yes", "annotations: {service.cilium.io/global: 'yes'}", "clusterIP: 10.96.0.17, "+port),
		service("shop", "says-one", "annotations: {service.cilium.io/global: '1'}", "clusterIP: 10.96.0.18, "+port),
		service("shop", "headless", global, "clusterIP: None, selector: {app: web}, "+port),
		service("shop", "headless-label", "annotations: {service.cilium.io/global: 'true'}, labels: {service.kubernetes.io/headless: ''}", "clusterIP: 10.96.0.19, "+port),
		service("shop", "same-number", global, "clusterIP: 10.96.0.20, ports: [{name: t, port: 53}, {name: u, port: 53, protocol: UDP}, {name: s, port: 53, protocol: SCTP}]"),
		service("shop", "node-port", global, "type: NodePort, clusterIP: 10.96.0.21, ports: [{port: 80, nodePort: 30080}]"),
		service("shop", "load-balancer", global, "type: LoadBalancer, clusterIP: 10.96.0.22, loadBalancerClass: x/y, "+port),
		service("shop", "other-proxy", "annotations: {service.cilium.io/global: 'true'}, labels: {service.kubernetes.io/service-proxy-name: other}", "clusterIP: 10.96.0.23, "+port),
		service("shop", "empty", global, "clusterIP: 10.96.0.24, "+port),
		service("local", "web", global, "clusterIP: 10.96.0.25, "+port),
		service("global", "web", global, "clusterIP: 10.96.0.26, "+port),
		service("odd", "web", global, "clusterIP: 10.96.0.27, "+port),
		service("shop", "target", global, "clusterIP: 10.96.0.28, ports: [{name: web, port: 80, targetPort: http}, {name: metrics, port: 9090, targetPort: 9091}]"),
	}
}

// slice is an EndpointSlice of a service, or of none, with more of its contents.
func slice(namespace, name, service, contents string) string {
	labels := "{}"
	if service != "" {
		labels = fmt.Sprintf("{kubernetes.io/service-name: %s}", service)
	}
	return fmt.Sprintf("{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {namespace: %s, name: %s, labels: %s}, %s}", namespace, name, labels, contents)
}

func endpointSlices() []string {
	const four, six = "addressType: IPv4, ", "addressType: IPv6, "
	const port = "ports: [{port: 80}], "
	one := func(ip string) string {
		return four + port + "endpoints: [{addresses: [" + ip + "], conditions: {ready: true}}]"
	}
	return []string{
		slice("shop", "web-1", "web", four+"ports: [{name: http, port: 8080}, {name: dns, port: 53, protocol: UDP}], endpoints: ["+
			"{addresses: [10.1.0.20], conditions: {ready: true, serving: true, terminating: false}, nodeName: full, zone: a, hints: {forZones: [{name: a}, {name: b}]}, targetRef: {kind: Pod, namespace: shop, name: four}},"+
			"{addresses: [10.1.0.21], conditions: {ready: false, serving: true, terminating: true}, hostname: dual},"+
			"{addresses: [10.1.0.22], conditions: {ready: false, serving: false, terminating: true}},"+
			"{addresses: [10.1.0.24]},"+
			"{addresses: [10.1.0.25], conditions: {ready: true, serving: false}}]"),
		slice("shop", "web-2", "web", six+"ports: [{name: http, port: 8080}], endpoints: [{addresses: ['fd01::21'], conditions: {ready: true}, zone: b}]"),
		slice("shop", "web-3", "web", four+"ports: [{name: http, port: 9090}, {name: grpc, port: 9091, appProtocol: kubernetes.io/h2c}], endpoints: [{addresses: [10.1.0.26], conditions: {ready: true}, deprecatedTopology: {topology.kubernetes.io/zone: c}}]"),
		slice("shop", "no-annotation-1", "no-annotation", one("10.1.0.20")),
		slice("shop", "not-shared-1", "not-shared", one("10.1.0.20")),
		slice("shop", "shared-alone-1", "shared-alone", one("10.1.0.20")),
		slice("shop", "old-annotation-1", "old-annotation", one("10.1.0.20")),
		slice("shop", "headless-1", "headless", one("10.1.0.20")),
		slice("shop", "same-number-1", "same-number", four+"ports: [{name: t, port: 53}, {name: u, port: 53, protocol: UDP}, {name: s, port: 53, protocol: SCTP}], endpoints: [{addresses: [10.1.0.20], conditions: {ready: true}}]"),
		slice("shop", "node-port-1", "node-port", four+"endpoints: [{addresses: [10.1.0.20], conditions: {ready: true}}]"),
		slice("shop", "load-balancer-1", "load-balancer", four+"ports: [{name: a}], endpoints: [{addresses: [10.1.0.20], conditions: {ready: true}}]"),
		slice("shop", "other-proxy-1", "other-proxy", one("10.1.0.20")),
		slice("shop", "orphan", "nobody", one("10.1.0.20")),
		slice("shop", "free", "", one("10.1.0.20")),
		slice("shop", "empty-1", "empty", four+port+"endpoints: []"),
		slice("local", "web-1", "web", one("10.1.0.30")),
		slice("global", "web-1", "web", one("10.1.0.31")),
		slice("odd", "web-1", "web", one("10.1.0.32")),
		slice("shop", "target-1", "target", four+"ports: [{name: web, port: 8080}, {name: metrics, port: 9091}], endpoints: [{addresses: [10.1.0.20], conditions: {ready: true}}]"),
		"{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {namespace: shop, name: from-the-mesh, labels: {kubernetes.io/service-name: web, endpointslice.kubernetes.io/managed-by: endpointslice-mesh-controller.cilium.io}}, " + one("10.9.0.1") + "}",
		"{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {namespace: shop, name: headless-slice, labels: {kubernetes.io/service-name: headless-label, service.kubernetes.io/headless: ''}, annotations: {endpoints.kubernetes.io/last-change-trigger-time: '2026-01-01T00:00:00Z'}}, " + one("10.1.0.20") + "}",
		"{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {namespace: shop, name: other-proxy-slice, labels: {kubernetes.io/service-name: target, service.kubernetes.io/service-proxy-name: other}}, " + one("10.1.0.20") + "}",
	}
}

// disputed are objects that Cilium and we publish differently, by the one key that differs (docs/interop.md).
func disputed() map[string][]string {
	return map[string][]string{
		// Its readers refuse slices of names.
		wire.EndpointSlices.Key(cluster, false, "global/fqdn"): {
			slice("global", "fqdn", "web", "addressType: FQDN, ports: [{port: 80}], endpoints: [{addresses: [some.name], conditions: {ready: true}}]"),
		},
		// It has a frontend without an address.
		wire.Services.Key(cluster, false, "global/external-name"): {
			service("global", "external-name", "annotations: {service.cilium.io/global: 'true'}", "type: ExternalName, externalName: example.com, ports: [{port: 80}]"),
		},
		// It publishes an endpoint that is not ready when nothing says that it does not serve.
		wire.Services.Key(cluster, false, "global/not-ready"): {
			service("global", "not-ready", "annotations: {service.cilium.io/global: 'true'}", "clusterIP: 10.96.0.29, ports: [{port: 80}]"),
			slice("global", "not-ready-1", "not-ready", "addressType: IPv4, ports: [{port: 80}], endpoints: [{addresses: [10.1.0.23], conditions: {ready: false}}]"),
		},
		// It withholds an identity of a namespace that is gone.
		wire.Identities.Key(cluster, false, "196705"): {identity("196705", "'k8s:io.kubernetes.pod.namespace': gone, 'k8s:app': web")},
		// It publishes an address whose identity is not known yet.
		wire.IPs.Key(cluster, false, "10.1.0.41"): {endpoint("global", "starts", "networking: {node: 192.168.0.1, addressing: [{ipv4: 10.1.0.41}]}")},
		// Its readers complain of ports of any protocol, and ours are in the order of their names.
		wire.IPs.Key(cluster, false, "10.1.0.40"): {
			endpoint("global", "any", "identity: {id: 196702}, named-ports: [{name: b, port: 80, protocol: TCP}, {name: any, port: 7, protocol: ANY}, {name: a, port: 81, protocol: TCP}], networking: {node: 192.168.0.1, addressing: [{ipv4: 10.1.0.40}]}"),
		},
	}
}
