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
	kinds // the number of kinds, and the kind of all other types
)

// url returns the type URL of the protocol.
func (k kind) url() string {
	return [...]string{resource.ListenerType, resource.RouteType, resource.ClusterType, resource.EndpointType}[k]
}

// String returns the name of the type in the plural.
func (k kind) String() string {
	return [...]string{"listeners", "routes", "clusters", "endpoints", "other"}[k]
}

// kindOf returns the kind of a type URL; kinds for a type that is not served.
func kindOf(url string) kind {
	for k := range kinds {
		if k.url() == url {
			return k
		}
	}
	return kinds
}

// complete reports whether an answer with the state of the world must have all resources of this kind that the client
// follows, also the unchanged ones: a client removes the missing ones (xds.md A4).
func (k kind) complete() bool { return k == listenerKind || k == clusterKind }
