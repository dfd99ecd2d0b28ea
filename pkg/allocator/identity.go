package allocator

import "github.com/mesh-agent/mesh-agent/pkg/wire"

// Identity is a number and the labels that it stands for in one cluster. It is
// immutable once it was handed to [Identities.Apply]. ID and Cluster identify it.
type Identity struct {
	ID        uint32
	ClusterID uint32
	Cluster   string
	Labels    Labels
}

// FromWire converts a decoded identity of the cluster. It keeps the cluster's
// name, which is best one string for all its identities, and nothing else of
// its arguments.
func FromWire(id wire.Identity, cluster string, clusterID uint32) *Identity {
	return &Identity{ID: id.ID, ClusterID: clusterID, Cluster: cluster, Labels: NewLabels(id.Labels)}
}

// Map returns the labels as a map from "source:key" to value.
func (i *Identity) Map() map[string]string { return i.Labels.Map() }

// Equal tells whether both say the same.
func (i *Identity) Equal(o *Identity) bool {
	return *i == *o
}
