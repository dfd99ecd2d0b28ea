// Package clustermesh turns a directory of client files into a set of running
// clusters, and owns what they share: the sessions with their kvstores, the
// cluster IDs, and the view that their sources fill. When the options name a
// kvstore of the own cluster, that one is read beside them and counts as local.
//
// The directory decides. A file that appears makes a cluster, one whose content
// changes makes it connect anew (keeping what it knows), one that is gone
// drains it. Everything else in the directory, such as certificates, Kubernetes'
// "..data" links and editors' leavings, is no client file and does nothing
// (wire.md §3.1).
//
// Concurrency: [Mesh.Run] owns every goroutine, one for the directory, one for
// each cluster and one for each session, and returns when they have ended. All
// other methods may be called by any, at any time.
package clustermesh
