package api

import (
	"iter"
	"reflect"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// ByResource holds one value for each resource of a cluster.
type ByResource[T any] struct {
	Nodes          T `json:"nodes"`
	Services       T `json:"services"`
	EndpointSlices T `json:"endpointSlices"`
	ServiceExports T `json:"serviceExports"`
	Identities     T `json:"identities"`
	IPs            T `json:"ips"`
}

// Of returns a pointer to the value of a resource; nil for an unknown one.
func (b *ByResource[T]) Of(r wire.Resource) *T {
	switch r {
	case wire.Nodes:
		return &b.Nodes
	case wire.Services:
		return &b.Services
	case wire.EndpointSlices:
		return &b.EndpointSlices
	case wire.ServiceExports:
		return &b.ServiceExports
	case wire.Identities:
		return &b.Identities
	case wire.IPs:
		return &b.IPs
	}
	return nil
}

// All yields every resource with its value, which may be changed in place.
func (b *ByResource[T]) All() iter.Seq2[wire.Resource, *T] {
	return func(yield func(wire.Resource, *T) bool) {
		for _, r := range wire.Resources() {
			if !yield(r, b.Of(r)) {
				return
			}
		}
	}
}

// Capabilities are the abilities that a cluster advertises (wire.md §2.1). A
// nil field was not advertised.
type Capabilities struct {
	SyncedCanaries           *bool   `json:"syncedCanaries,omitempty"`
	Cached                   *bool   `json:"cached,omitempty"`
	MaxConnectedClusters     *uint32 `json:"maxConnectedClusters,omitempty"`
	ServiceExportsEnabled    *bool   `json:"serviceExportsEnabled,omitempty"`
	EndpointSlicesExportMode *string `json:"endpointSlicesExportMode,omitempty"`
}

// All yields the advertised capabilities, by name.
func (c Capabilities) All() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for field, value := range reflect.ValueOf(c).Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if !value.IsNil() && !yield(name, value.Elem().Interface()) {
				return
			}
		}
	}
}

// wire returns the settings about resources, in the form of the configuration.
func (c Capabilities) wire() wire.Capabilities {
	caps := wire.Capabilities{ServiceExportsEnabled: c.ServiceExportsEnabled}
	if c.EndpointSlicesExportMode != nil {
		caps.EndpointSlicesExportMode = *c.EndpointSlicesExportMode
	}
	return caps
}
