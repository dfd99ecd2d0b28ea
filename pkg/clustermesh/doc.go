// Package clustermesh runs one cluster for each client file of a directory, and owns
// the parts that the clusters share: the sessions with their kvstores, the cluster IDs,
// and the view that their families fill. When the options name a kvstore of the own
// cluster, it is read as well and counts as local.
//
// The directory defines the set of clusters. A new file adds a cluster. When the content of a file
// changes, its cluster connects again and keeps its data. When a file is removed, its cluster is
// drained. All other files of the directory, such as certificates, Kubernetes' "..data" links and
// temporary files of editors, are no client files and have no effect (wire.md §3.1).
//
// Concurrency: [Remotes.Run] owns every goroutine, one for the directory, one for
// each cluster and one for each session, and returns when they have ended. All
// other methods may be called by any goroutine, at any time.
//
// # Design
//
// Sessions are shared: clusters with the same client file, such as the hundreds that a mirror
// caches in one etcd, have one connection, one probe and one heartbeat watch (pool.go). All
// sessions of a mesh probe in the same second: each wake-up costs an idle agent more than the probes.
//
// A withdrawal is finished before the cluster is used again. When the file is restored
// meanwhile, a new controller starts after it. A file must be missing for half a second
// before its cluster is drained: a file that is rewritten in place is empty for a moment.
package clustermesh
