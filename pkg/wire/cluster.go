package wire

import (
	"errors"
	"fmt"
)

// DefaultClusterName is the name of a cluster outside any mesh. A remote may have it, an own cluster with an ID
// may not (wire.md §2.3).
const DefaultClusterName = "default"

// maxClusterNameLength is in bytes.
const maxClusterNameLength = 32

// ValidateClusterName accepts 1 to 32 characters: lower-case letters, digits
// and, inside, hyphens (wire.md §2.3).
func ValidateClusterName(name string) error {
	if name == "" {
		return errors.New("must not be empty")
	}
	if len(name) > maxClusterNameLength {
		return fmt.Errorf("must not be more than %d characters", maxClusterNameLength)
	}
	for i := range len(name) {
		c := name[i]
		inside := i > 0 && i < len(name)-1
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' && inside {
			continue
		}
		return errors.New("must consist of lower case alphanumeric characters and '-', " +
			"and must start and end with an alphanumeric character")
	}
	return nil
}

// ClusterInfo is the reader's own cluster. ID 0 means that it is in no mesh.
type ClusterInfo struct {
	Name                 string
	ID                   uint32
	MaxConnectedClusters uint32
}

// Validate checks the name, the ID and their combination (wire.md §2.3).
func (c ClusterInfo) Validate() error {
	layout, err := NewLayout(c.MaxConnectedClusters)
	if err != nil {
		return err
	}
	if c.ID > layout.Max() {
		return fmt.Errorf("invalid cluster id %d: must be in range 0..%d", c.ID, layout.Max())
	}
	return c.validateName()
}

// ValidateStrict is Validate for a cluster that must be in a mesh: ID 0 is an error too.
func (c ClusterInfo) ValidateStrict() error {
	layout, err := NewLayout(c.MaxConnectedClusters)
	if err != nil {
		return err
	}
	if err := layout.ValidateClusterID(c.ID); err != nil {
		return err
	}
	return c.validateName()
}

func (c ClusterInfo) validateName() error {
	if err := ValidateClusterName(c.Name); err != nil {
		return fmt.Errorf("invalid cluster name: %w", err)
	}
	if c.ID != 0 && c.Name == DefaultClusterName {
		return fmt.Errorf("cannot use default cluster name (%s) with option cluster-id", DefaultClusterName)
	}
	return nil
}

// The modes in which a cluster may export endpoint slices (wire.md §1.4, §2.1).
const (
	EndpointSlicesServicesOnly = ""                            // services only
	EndpointSlicesBoth         = "services-and-endpointslices" // both
	EndpointSlicesOnly         = "endpointslices-only"         // slices only
)

// ClusterConfig is the configuration that a cluster publishes (wire.md §2.1).
type ClusterConfig struct {
	ID           uint32       `json:"id,omitempty"`
	Capabilities Capabilities `json:"capabilities"`
}

// Capabilities are the abilities that a cluster advertises.
type Capabilities struct {
	// SyncedCanaries: wait for each resource's canary before reading it.
	SyncedCanaries bool `json:"syncedCanaries,omitempty"`
	// Cached: the entries are a copy below cilium/cache.
	Cached bool `json:"cached,omitempty"`
	// MaxConnectedClusters is 0 when the writer is older than the field.
	MaxConnectedClusters uint32 `json:"maxConnectedClusters,omitempty"`
	// ServiceExportsEnabled is nil when the cluster does not have the feature, so that neither its canary nor
	// its prefix will ever appear.
	ServiceExportsEnabled *bool `json:"serviceExportsEnabled,omitempty"`
	// EndpointSlicesExportMode is one of the EndpointSlices constants.
	EndpointSlicesExportMode string `json:"endpointSlicesExportMode,omitempty"`
}

// Everything are the capabilities of a cluster that writes every resource.
func Everything() Capabilities {
	enabled := true
	return Capabilities{EndpointSlicesExportMode: EndpointSlicesBoth, ServiceExportsEnabled: &enabled}
}

// DecodeClusterConfig reads a configuration without validating it. The error is a [*RejectError].
func DecodeClusterConfig(value []byte) (ClusterConfig, error) {
	var c ClusterConfig
	if err := unmarshal("", value, &c); err != nil {
		return ClusterConfig{}, err
	}
	return c, nil
}

// Encode returns the value to write.
func (c ClusterConfig) Encode() []byte { return mustJSON(c) }

// ErrMaxConnectedClusters: two clusters belong to meshes of different sizes.
var ErrMaxConnectedClusters = errors.New("mismatched MaxConnectedClusters")

// Validate checks whether the reader's cluster can work with a remote that has this configuration
// (wire.md §2.3). It does not check whether the remote's ID is also the reader's own, or another remote's: the
// code that assigns IDs has to do this.
func (c ClusterConfig) Validate(local ClusterInfo) error {
	layout, err := NewLayout(local.MaxConnectedClusters)
	if err != nil {
		return err
	}
	if err := layout.ValidateClusterID(c.ID); err != nil {
		return err
	}
	remote := c.Capabilities.MaxConnectedClusters
	if local.MaxConnectedClusters == MaxConnectedClusters511 && remote != local.MaxConnectedClusters {
		return fmt.Errorf("%w; local=%d, remote=%d", ErrMaxConnectedClusters, local.MaxConnectedClusters, remote)
	}
	switch mode := c.Capabilities.EndpointSlicesExportMode; mode {
	case EndpointSlicesServicesOnly, EndpointSlicesBoth, EndpointSlicesOnly:
		return nil
	default:
		return fmt.Errorf("invalid EndpointSlicesExportMode %q", mode)
	}
}
