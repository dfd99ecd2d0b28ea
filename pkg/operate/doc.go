// Package operate does what only one process per cluster may do: it publishes the
// cluster's configuration, its heartbeat, its services in both formats and its
// service exports, with their canaries, and the identities that Cilium keeps as
// objects of Kubernetes, but never in the place of a mapping that an allocator
// wrote; on request the nodes and addresses of a cluster whose agents do not write
// to its kvstore; it collects unused identities, where there are no such
// objects, and locks that were left behind; and on request it gives etcd the users
// and roles of a mesh (wire.md §0, §1.6, §1.9, §1.10, §2.1, §5).
//
// Of all who run it one leads, elected through the kvstore, and each write proves
// that it still does. The keys of a leader that dies outlive it by their lease,
// within which the next one takes them over.
//
// Concurrency: [Operator.Run] owns every goroutine. All other methods may be called
// by any, at any time.
package operate
