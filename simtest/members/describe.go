package members

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// Namespace is the namespace of all services and pods.
const Namespace = "shop"

// Service is one service of a description. It has one pod on every node.
type Service struct {
	Name     string
	Global   bool   // annotated as a global service
	Affinity string // annotation: "local", "remote" or ""
	Down     bool   // its pods exist, and none is ready
}

// Description is the contents of the manifests of a cluster.
type Description struct {
	cluster  *Cluster
	nodes    int
	Services []Service
}

// Describe returns the first description of a cluster: "web" and "cart" are global services, one with local affinity
// and one with remote; "stock" is not global.
func (c *Cluster) Describe(nodes int) *Description {
	return &Description{c, nodes, []Service{
		{Name: "web", Global: true, Affinity: "local"},
		{Name: "cart", Global: true, Affinity: "remote"},
		{Name: "stock"},
	}}
}

// Service finds a service by its name.
func (d *Description) Service(name string) *Service {
	for i := range d.Services {
		if d.Services[i].Name == name {
			return &d.Services[i]
		}
	}
	return nil
}

// Node is the name of a node, NodeAddress its address.
func (c *Cluster) Node(i int) string { return fmt.Sprintf("%s-node%d", c.Name, i+1) }

// NodeAddress is the address of a node.
func (c *Cluster) NodeAddress(i int) string { return fmt.Sprintf("10.%d.0.%d", c.ID, i+1) }

// Pod is the name of a service's pod on a node.
func (c *Cluster) Pod(service string, node int) string {
	return fmt.Sprintf("%s-%d", service, node+1)
}

// PodAddress is the address of the pod of a service, by its place in the description, on a node.
func (c *Cluster) PodAddress(service, node int) string {
	return fmt.Sprintf("10.%d.%d.%d", c.ID, node+1, 10+service)
}

// Write writes the manifests, a file for each kind, each replaced atomically.
func (d *Description) Write(dir string) error {
	var nodes, pods, services []string
	for i := range d.nodes {
		nodes = append(nodes, d.node(i))
	}
	for i, s := range d.Services {
		services = append(services, d.service(s), d.slice(i, s))
		for n := range d.nodes {
			pods = append(pods, d.pod(i, n, s))
		}
	}
	errs := make([]error, 0, 3)
	for name, documents := range map[string][]string{"nodes.yaml": nodes, "pods.yaml": pods, "services.yaml": services} {
		errs = append(errs, write(filepath.Join(dir, name), strings.Join(documents, "---\n")))
	}
	return errors.Join(errs...)
}

func (d *Description) node(i int) string {
	c := d.cluster
	return fmt.Sprintf(`apiVersion: v1
kind: Node
metadata:
  name: %s
spec:
  podCIDRs: [10.%d.%d.0/24]
status:
  addresses:
  - {type: InternalIP, address: %s}
  - {type: Hostname, address: %s}
`, c.Node(i), c.ID, i+1, c.NodeAddress(i), c.Node(i))
}

func (d *Description) pod(service, node int, s Service) string {
	c := d.cluster
	return fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata:
  name: %s
  namespace: %s
  labels: {app: %s}
spec:
  nodeName: %s
  serviceAccountName: default
  containers:
  - name: main
    ports:
    - {name: http, containerPort: 8080, protocol: TCP}
status:
  phase: Running
  hostIP: %s
  podIP: %s
  podIPs:
  - {ip: %s}
`, c.Pod(s.Name, node), Namespace, s.Name, c.Node(node), c.NodeAddress(node), c.PodAddress(service, node), c.PodAddress(service, node))
}

func (d *Description) service(s Service) string {
	annotations := ""
	if s.Global {
		annotations = "\n  annotations:\n    service.cilium.io/global: \"true\""
		if s.Affinity != "" {
			annotations += "\n    service.cilium.io/affinity: " + s.Affinity
		}
	}
	return fmt.Sprintf(`apiVersion: v1
kind: Service
metadata:
  name: %s
  namespace: %s%s
spec:
  clusterIP: 172.20.%d.%d
  clusterIPs: [172.20.%d.%d]
  selector: {app: %s}
  ports:
  - {name: http, port: 80, targetPort: 8080, protocol: TCP}
`, s.Name, Namespace, annotations, d.cluster.ID, len(s.Name), d.cluster.ID, len(s.Name), s.Name)
}

func (d *Description) slice(service int, s Service) string {
	var b strings.Builder
	fmt.Fprintf(&b, `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: %s-1
  namespace: %s
  labels: {kubernetes.io/service-name: %s}
addressType: IPv4
ports:
- {name: http, port: 8080, protocol: TCP}
endpoints:
`, s.Name, Namespace, s.Name)
	for n := range d.nodes {
		fmt.Fprintf(&b, `- addresses: [%s]
  nodeName: %s
  conditions: {ready: %t, serving: %t, terminating: false}
`, d.cluster.PodAddress(service, n), d.cluster.Node(n), !s.Down, !s.Down)
	}
	return b.String()
}
