package kubernetes

import "fmt"

func namespace(name string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %s, annotations: {clustermesh.cilium.io/global: "true"}}
`, name)
}

func service(name string, port int) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {namespace: default, name: %s, annotations: {service.cilium.io/global: "true"}}
spec: {selector: {app: %[1]s}, ports: [{name: http, port: %d, protocol: TCP}]}
`, name, port)
}

func slice(name, service, address string) string {
	return fmt.Sprintf(`
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: default, name: %s, labels: {kubernetes.io/service-name: %s}}
addressType: IPv4
endpoints: [{addresses: [%s], conditions: {ready: true}, targetRef: {kind: Pod, name: one}}]
ports: [{name: http, port: 80, protocol: TCP}]
`, name, service, address)
}

// node has a heartbeat, which its kubelet would move.
func node(name, address, heartbeat string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Node
metadata: {name: %s}
spec: {podCIDR: 10.1.0.0/24, podCIDRs: [10.1.0.0/24]}
status:
  addresses: [{type: InternalIP, address: %s}]
  conditions: [{type: Ready, status: "True", lastHeartbeatTime: %q}]
`, name, address, heartbeat)
}

func pod(name, node, address string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {namespace: default, name: %s, labels: {app: %[1]s}}
spec:
  nodeName: %s
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: example.org/main, env: [{name: A, value: B}], ports: [{name: http, containerPort: 80}]}]
status: {phase: Running, hostIP: 192.168.0.1, podIP: %s, podIPs: [{ip: %[3]s}]}
`, name, node, address)
}

// definition defines a kind whose objects may have any field.
func definition(group, version, kind, plural, scope string) string {
	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %s.%s
  annotations: {api-approved.kubernetes.io: "unapproved, for a test"}
spec:
  group: %[2]s
  scope: %[3]s
  names: {kind: %[4]s, plural: %[1]s}
  versions:
  - name: %[5]s
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, plural, group, scope, kind, version)
}

func definitions() []string {
	return []string{
		definition("multicluster.x-k8s.io", "v1alpha1", "ServiceExport", "serviceexports", "Namespaced"),
		definition("cilium.io", "v2", "CiliumNode", "ciliumnodes", "Cluster"),
		definition("cilium.io", "v2", "CiliumEndpoint", "ciliumendpoints", "Namespaced"),
		definition("cilium.io", "v2", "CiliumIdentity", "ciliumidentities", "Cluster"),
	}
}

// customs are an object of each kind with a definition.
func customs() []string {
	return []string{`
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ServiceExport
metadata: {namespace: default, name: web}
`, `
apiVersion: cilium.io/v2
kind: CiliumNode
metadata: {name: node-1}
spec: {bootid: b1, addresses: [{type: InternalIP, ip: 192.168.0.1}], ipam: {podCIDRs: [10.1.0.0/24]}, encryption: {key: 3}}
`, `
apiVersion: cilium.io/v2
kind: CiliumEndpoint
metadata: {namespace: default, name: one}
status:
  identity: {id: 4711}
  networking: {addressing: [{ipv4: 10.1.0.1}], node: 192.168.0.1}
  named-ports: [{name: http, port: 80, protocol: TCP}]
`, `
apiVersion: cilium.io/v2
kind: CiliumIdentity
metadata: {name: "4711"}
security-labels: {"k8s:app": one}
`}
}
