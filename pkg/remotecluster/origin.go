package remotecluster

import (
	"fmt"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Origin says what a cluster is to the reader.
type Origin uint8

const (
	// OriginRemote is another cluster of the mesh. Its configuration says what
	// is read, and where: its own state, or a copy of it (cached).
	OriginRemote Origin = iota
	// OriginLocal is the own cluster, read from its kvstore. Nobody writes a
	// configuration or canaries for ourselves, and the ID is ours already. What
	// it says is stronger than what remotes say (wire.md §4.1).
	OriginLocal
)

// ownConfig stands in for the configuration of the own cluster: its kvstore may
// hold every resource; a prefix without keys costs nothing.
func ownConfig(local wire.ClusterInfo) wire.ClusterConfig {
	everything := wire.Everything()
	everything.MaxConnectedClusters = local.MaxConnectedClusters
	return wire.ClusterConfig{ID: local.ID, Capabilities: everything}
}

// IDs hands out cluster IDs: one owner each (wire.md §2.3).
type IDs interface {
	// Admit reports whether the cluster of the name may come with the ID at all,
	// whoever has it. The error is an [*Inadmissible].
	Admit(name string, id uint32) error
	// Reserve gives the ID to the cluster of the name. The error is an
	// [*IDConflict] when another one has it.
	Reserve(name string, id uint32) error
	// Release takes back whatever the cluster has.
	Release(name string)
}

// Inadmissible is why a cluster may not be read as its configuration says, whoever
// has its ID at this moment.
type Inadmissible struct {
	Code codes.Code
	Why  string
	// Withdraw: what the cluster has brought before goes, too.
	Withdraw bool
}

// Error says why.
func (e *Inadmissible) Error() string { return e.Why }

// IDConflict is why a cluster cannot have its ID.
type IDConflict struct {
	ID     uint32
	Holder string // the cluster that has it
	Own    bool   // which is our own
	// Remembered: the holder had it before a restart of ours, and is away.
	Remembered bool
}

// Error says who has the ID, and what to do.
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
