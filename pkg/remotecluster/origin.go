package remotecluster

import (
	"fmt"

	"github.com/mesh-agent/mesh-agent/pkg/store"
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
// hold services in both formats, and exports; a prefix without keys costs nothing.
func ownConfig(local wire.ClusterInfo) wire.ClusterConfig {
	exports := true
	return wire.ClusterConfig{ID: local.ID, Capabilities: wire.Capabilities{
		MaxConnectedClusters: local.MaxConnectedClusters, EndpointSlicesExportMode: wire.EndpointSlicesBoth, ServiceExportsEnabled: &exports,
	}}
}

// details tells whether the resource only adds to what another one brings: the
// slices of a cluster that exports services as well.
func details(caps wire.Capabilities, r wire.Resource) bool {
	return r == wire.EndpointSlices && caps.Exports(wire.Services)
}

// standing is what a source contributes at this moment.
type standing struct {
	store.Status
	// late: its canary is overdue, or it is aside and not followed; the cluster is
	// used without it.
	late bool
	// left: it is not exported any more, and what it had brought is kept until
	// the other sources are synced.
	left bool
}

// stand describes a source; the tracker's mu is held. That a resource is not
// exported is known from the configuration: the copy, which is empty, is as
// good as that one is.
func (c *Cluster) stand(s Source) standing {
	t, r := &c.track, s.Resource()
	switch {
	case t.capabilities == nil:
	case !t.capabilities.Exports(r):
		if st := s.Status(); st.Count > 0 {
			st.Synced, st.Followed = true, true
			return standing{Status: st, left: true}
		}
		st := store.Status{Synced: true, Followed: true, AsOf: t.configAsOf}
		if t.config != nil {
			cfg := t.config.watch.Status()
			st.Following, st.AsOf, st.Err = cfg.Following, cfg.AsOf, cfg.Err
		}
		return standing{Status: st}
	case r == c.Aside:
		st := s.Status()
		return standing{Status: st, late: !st.Synced || !st.Following}
	case details(*t.capabilities, r):
		return standing{Status: s.Status(), late: t.late[r]}
	}
	return standing{Status: s.Status()}
}

// IDs hands out cluster IDs: one owner each (wire.md §2.3).
type IDs interface {
	// Admit tells whether the cluster of the name may come with the ID at all,
	// whoever has it. The error is an [*Inadmissible].
	Admit(name string, id uint32) error
	// Reserve gives the ID to the cluster of the name. The error is an
	// [*IDConflict] when another one has it.
	Reserve(name string, id uint32) error
	// Release takes back whatever the cluster has.
	Release(name string)
}

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
		return fmt.Sprintf("cluster ID %d is that of cluster %q, which had it before the agent was restarted and is away: give one of the two another; "+
			"when %[2]q is gone for good, remove its client file; a claim policy file may pin the ID to this one", e.ID, e.Holder)
	}
	holder := "cluster"
	if e.Own {
		holder = "our own cluster"
	}
	return fmt.Sprintf("cluster ID %d is already used by %s %q: IDs must be unique in a mesh, give one of the two another", e.ID, holder, e.Holder)
}
