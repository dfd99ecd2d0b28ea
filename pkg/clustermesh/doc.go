// Package clustermesh turns a directory of client files into a set of running
// clusters, and owns what they share: the sessions with their kvstores, the
// cluster IDs, and the view that their sources fill. When the options name a
// kvstore of the own cluster, that one is read beside them and counts as local.
//
// The directory decides. A file that appears makes a cluster, one whose content changes makes it
// connect again (keeping what it knows), one that is gone drains it. Everything else in the
// directory, such as certificates, Kubernetes' "..data" links and editors' leavings, is no client
// file and does nothing (wire.md §3.1).
//
// Concurrency: [Mesh.Run] owns every goroutine, one for the directory, one for
// each cluster and one for each session, and returns when they have ended. All
// other methods may be called by any, at any time.
//
// # Design
//
// Sessions are shared: clusters with the same client file, such as the hundreds that a mirror
// caches in one etcd, have one connection, one probe and one heartbeat watch (pool.go). All
// sessions of a mesh probe in the same second: waking up costs an idle agent more than asking.
//
// A withdrawal is finished before the cluster is used again. When the file returns
// meanwhile, another controller begins after it. A file must be gone for half a second
// before its cluster is drained: one that is rewritten in place is empty for a moment.
package clustermesh
