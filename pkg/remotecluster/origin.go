package remotecluster

import (
	"fmt"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Origin is the relation of a cluster to the reader: a remote cluster or the own one.
type Origin uint8

const (
	// OriginRemote is another cluster of the mesh. Its configuration defines which
	// resources are read, and from where: its own state, or a copy of it (cached).
	OriginRemote Origin = iota
	// OriginLocal is the own cluster, read from its kvstore. No configuration and no
	// canaries are read for it, and its ID is reserved from the start. Its entries
	// take precedence over those of remote clusters (wire.md §4.1).
	OriginLocal
)

// ownConfig returns the configuration to use for the own cluster. It exports every
// resource: the kvstore may hold each of them, and a prefix without keys costs nothing.
func ownConfig(local wire.ClusterInfo) wire.ClusterConfig {
	everything := wire.Everything()
	everything.MaxConnectedClusters = local.MaxConnectedClusters
	return wire.ClusterConfig{ID: local.ID, Capabilities: everything}
}

// IDs reserves cluster IDs: each has one owner (wire.md §2.3).
type IDs interface {
	// Admit reports whether the cluster of this name may use the ID at all, independent
	// of the present owner of the ID. The error is an [*Inadmissible].
	Admit(name string, id uint32) error
	// Reserve gives the ID to the cluster of this name. The error is an
	// [*IDConflict] when another cluster has it.
	Reserve(name string, id uint32) error
	// Release releases the ID of the cluster, if it has one.
	Release(name string)
}

// Inadmissible is why a cluster may not be read with the ID in its configuration,
// independent of the present owner of the ID.
type Inadmissible struct {
	Code codes.Code
	Why  string
	// Withdraw: the entries that the cluster already has are withdrawn as well.
	Withdraw bool
}

// Error returns the reason.
func (e *Inadmissible) Error() string { return e.Why }

// IDConflict is why a cluster cannot have its ID.
type IDConflict struct {
	ID     uint32
	Holder string // the cluster that has it
	Own    bool   // the holder is our own cluster
	// Remembered: the holder had the ID before this process was restarted, and is not connected.
	Remembered bool
}

// Error names the holder of the ID, and the remedy.
func (e *IDConflict) Error() string {
	if e.Remembered {
		return fmt.Sprintf("cluster ID %d belongs to cluster %q, which is not connected: it had this ID before the agent was restarted; give one of the two another ID; "+
			"when %[2]q is gone for good, remove its client file; a claim policy file may pin the ID to this one", e.ID, e.Holder)
	}
	holder := "cluster"
	if e.Own {
		holder = "our own cluster"
	}
	return fmt.Sprintf("cluster ID %d is already used by %s %q: IDs must be unique in a mesh, give one of the two another ID", e.ID, holder, e.Holder)
}
