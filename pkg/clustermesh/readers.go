package clustermesh

import (
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Reader reads clusters and describes them: [Remotes] for the view, a mirror to copy them; [None] reads none. Its
// methods answer at once, except Find, and may be called concurrently.
type Reader interface {
	// Clusters describes every remote cluster at this moment, sorted by name.
	Clusters() []remotecluster.Status
	// Revision grows with every change of the state of a cluster; counts and freshness change without it.
	Revision() uint64
	// Changed returns a channel that is closed once Revision exceeds the known one; it may be nil if it never does.
	Changed(known uint64) <-chan struct{}
	// Local describes the own cluster as it is read from its kvstore; false when it is not read.
	Local() (remotecluster.Status, bool)
	// Announced describes the clusters that the mesh directory has at this moment and Clusters does not have, or has
	// with another client file.
	Announced() []remotecluster.Status
	// Ignored lists files of the mesh directory that cannot be client files, sorted by file.
	Ignored() []Ignored
	// Ready is true once every configured cluster was synced, or the sync timeout has passed. Once true it stays true.
	// The reasons are the missing parts by cluster.
	Ready() (bool, map[string]string)
	// Find returns the state of one key of a cluster, by its name below the prefix of the resource; false if nothing is
	// known of it. It may wait while a batch is read.
	Find(cluster string, r wire.Resource, name string) (store.Found, bool)
}

// None is the [Reader] of a process that reads no clusters. It is always ready.
type None struct{}

// Clusters implements [Reader].
func (None) Clusters() []remotecluster.Status { return nil }

// Revision implements [Reader].
func (None) Revision() uint64 { return 0 }

// Changed implements [Reader].
func (None) Changed(uint64) <-chan struct{} { return nil }

// Local implements [Reader].
func (None) Local() (remotecluster.Status, bool) { return remotecluster.Status{}, false }

// Announced implements [Reader].
func (None) Announced() []remotecluster.Status { return nil }

// Ignored implements [Reader].
func (None) Ignored() []Ignored { return nil }

// Ready implements [Reader].
func (None) Ready() (bool, map[string]string) { return true, nil }

// Find implements [Reader].
func (None) Find(string, wire.Resource, string) (store.Found, bool) { return store.Found{}, false }
