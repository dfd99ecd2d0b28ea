package clustermesh

import "github.com/mesh-agent/mesh-agent/pkg/remotecluster"

// These interfaces are for readers of a set of clusters, one for each subject. A [Mesh] implements
// all of them, a mirror some. Their methods do not block and may be called by any goroutine.
type (
	// Clusters describes the remote clusters.
	Clusters interface {
		// Clusters describes every cluster at this moment, sorted by name.
		Clusters() []remotecluster.Status
		// Revision increases with every change of a cluster's state, but not when only counts
		// or freshness change.
		Revision() uint64
	}
	// OwnCluster describes the own cluster.
	OwnCluster interface {
		// Local describes the own cluster as it is read from its kvstore; false when it is not read.
		Local() (remotecluster.Status, bool)
	}
	// MeshDirectory describes the mesh directory.
	MeshDirectory interface {
		// Announced describes the clusters in the directory at this moment that are not in
		// the result of Clusters, or are in it with another client file.
		Announced() []remotecluster.Status
		// Ignored lists files that cannot be client files of clusters, sorted by file.
		Ignored() []Ignored
	}
)
