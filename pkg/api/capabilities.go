package api

import (
	"iter"
	"reflect"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

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
