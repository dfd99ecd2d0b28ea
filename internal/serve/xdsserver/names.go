package xdsserver

import (
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/backends"
)

// maxName bounds the name of a resource, in bytes: a namespace, a service, a zone and a port together are shorter.
const maxName = 512

// maxVersion bounds a version that a client reports, in bytes.
const maxVersion = 64

// target is the meaning of the name of a resource: a port of a service.
type target struct {
	service serviceName
	port    string // name or number; empty: the only port of each backend
}

type serviceName struct{ namespace, name string }

// clusterName returns the name that the agent itself uses for a target.
func clusterName(s serviceName, port string) string {
	if port == "" {
		return s.namespace + "/" + s.name
	}
	return s.namespace + "/" + s.name + ":" + port
}

// parse parses NAMESPACE/SERVICE[:PORT] and SERVICE.NAMESPACE.svc.ZONE[:PORT]; ok is false for any other name.
func (n naming) parse(name string) (t target, ok bool) {
	if len(name) > maxName {
		return target{}, false
	}
	host, port, _ := strings.Cut(name, ":")
	if strings.Contains(name, "/") {
		t.service.namespace, t.service.name, _ = strings.Cut(host, "/")
	} else {
		t.service = n.ofDNS(host)
	}
	valid := isLabel(t.service.namespace) && isLabel(t.service.name) && !strings.HasSuffix(name, ":") && (port == "" || isLabel(port))
	t.port = backends.ParsePort(port).String() // 080 becomes 80, so that a port has one assignment
	return t, valid
}

// naming has the DNS zones in which services have names, in lower case and without a final dot.
type naming []string

func newNaming(zones []string) (n naming) {
	for _, z := range zones {
		n = append(n, strings.ToLower(strings.Trim(z, ".")))
	}
	return n
}

func (n naming) ofDNS(host string) serviceName {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	for _, zone := range n {
		if left, found := strings.CutSuffix(host, ".svc."+zone); found {
			name, namespace, _ := strings.Cut(left, ".")
			return serviceName{namespace, name}
		}
	}
	return serviceName{}
}

// isLabel reports whether a text is a valid name of an object or a port in Kubernetes.
func isLabel(text string) bool {
	if text == "" || len(text) > 63 {
		return false
	}
	return strings.IndexFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-'
	}) < 0
}
