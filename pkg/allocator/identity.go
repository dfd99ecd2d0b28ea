// Package allocator keeps the numeric identities of every cluster of the mesh:
// which set of labels each number stands for.
//
// Words: a *mapping* is the entry in a kvstore that gives a number to a set of
// labels; a *node reference* is the entry with which a node says that it uses
// one. (Cilium's documents call them master key and slave key.) What a remote
// cluster publishes for readers are mappings. They are never allocated, refreshed
// or released from here, and the same labels have another number in each
// cluster (wire.md §1.6, §4.6).
//
// An [Identity] is one mapping in compact, immutable form. [Identities] owns the
// table: each batch of changes becomes one write transaction, and what was
// applied before and comes again writes nothing.
//
// Concurrency: Apply may be called by several goroutines, transactions queue.
// Readers take snapshots of the table and never wait. Nothing here can fail: a
// mapping that is not acceptable was refused when it was decoded.
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
