package xdsserver

import (
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
)

// kind is a type of resource that is served.
type kind int

const (
	listenerKind kind = iota
	routeKind
	clusterKind
	endpointKind
	kinds // how many there are
)

// url is that of the type in the protocol.
func (k kind) url() string {
	return [...]string{resource.ListenerType, resource.RouteType, resource.ClusterType, resource.EndpointType}[k]
}

// String is the type in the plural.
func (k kind) String() string {
	return [...]string{"listeners", "routes", "clusters", "endpoints", "other"}[k]
}

// kindOf finds the kind of a type; kinds for one that is not served.
func kindOf(url string) kind {
	for k := range kinds {
		if k.url() == url {
			return k
		}
	}
	return kinds
}

// complete reports whether an answer with the state of the world has all resources of a kind that the client
// follows, whatever changed: what is missing is gone (xds.md A4).
func (k kind) complete() bool { return k == listenerKind || k == clusterKind }
