// Package clustermesh turns a directory of client files into a set of running
// clusters, and owns what they share: the sessions with their kvstores, the
// cluster IDs, and the view that their sources fill. When the options name a
// kvstore of the own cluster, that one is read beside them and counts as local.
//
// The directory decides. A file that appears makes a cluster, one whose content
// changes makes it connect again (keeping what it knows), one that is gone
// drains it. Everything else in the directory, such as certificates, Kubernetes'
// "..data" links and editors' leavings, is no client file and does nothing
// (wire.md §3.1).
//
// Concurrency: [Mesh.Run] owns every goroutine, one for the directory, one for
// each cluster and one for each session, and returns when they have ended. All
// other methods may be called by any, at any time.
//
// # Design
//
// Sessions are shared. The pool keys them by the contents of the client file
// (kvstore.HashContent), so the hundreds of clusters that a mirror caches in one
// etcd have one connection, one probe and one heartbeat watch. A session is one
// goroutine in the mesh's errgroup; a cluster has a handle on it: the first one
// begins it, later ones join, the last Close ends it, and one that has ended is
// not handed out again. Which endpoint is tried next belongs to the contents too.
// While any handle is in its first sync, the limit of a first sync holds for all
// of them. All sessions of a mesh probe in the same second: waking up costs an
// idle agent more than asking.
//
// A withdrawal is finished before the cluster is used again. A cluster whose file
// is gone is withdrawn to the end: of a copy first the configuration, after a
// pause the canaries and the keys. When the file returns meanwhile, another
// controller begins after it. A file must be gone for half a second before its
// cluster is drained: one that is rewritten in place is empty for a moment.
//
// Files that cannot be clusters (their names are no cluster names) are ignored as
// in Cilium, and shown in status.
//
// # Names
//
// What Cilium calls these things, and where they are here:
//
//	ClusterMesh, common.ClusterMesh      Mesh
//	Configuration                        Params
//	configDirectoryWatcher               Mesh.Run, with internal/dirwatch
//	RemoteClusterCreatorFunc             Params, which say what each controller gets
//	ClusterIDsManager,                   the owners of cluster IDs: the first valid configuration
//	ReserveClusterID, ReleaseClusterID   reserves, the end of Drain releases
//	NumReadyClusters                     Mesh.Clusters
//	NodesSynced, ServicesSynced,         Mesh.Ready, by resource in remotecluster.Status
//	IPIdentitiesSynced
//	Status                               Mesh.Clusters, Mesh.Local
//	GlobalServices                       services.Services.Global
//	RemoteIdentityWatcher                View: identities of each cluster are a source that
//	(WatchRemoteIdentities)              fills allocator.Identities
package clustermesh
