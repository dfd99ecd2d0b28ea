package clustermesh

import "github.com/mesh-agent/mesh-agent/pkg/remotecluster"

// What a reader of a set of clusters asks, by subject: a [Mesh] answers all of it, a
// mirror some. All of them answer at once and may be called by any goroutine.
type (
	// Clusters describes the remote clusters.
	Clusters interface {
		// Clusters describes every cluster at this moment, sorted by name.
		Clusters() []remotecluster.Status
		// Revision grows with every change of a cluster's state; counts and freshness move
		// without it.
		Revision() uint64
	}
	// OwnCluster describes the own cluster.
	OwnCluster interface {
		// Local describes it as it is read from its kvstore; false when it is not read.
		Local() (remotecluster.Status, bool)
	}
	// MeshDirectory describes the mesh directory.
	MeshDirectory interface {
		// Announced describes the clusters that the directory has at this moment and
		// Clusters has not, or has with another client file.
		Announced() []remotecluster.Status
		// Ignored lists files that cannot be a cluster's, sorted by file.
		Ignored() []Ignored
	}
)
