// Package contents says what a simulated cluster holds, and how that changes: the keys
// and values that the clustermesh-apiserver of a real cluster would have written. It has
// no I/O, clock, goroutine or lock.
//
// A [Cluster] describes one cluster (name, ID, sizes, seed), and its [Model] is a pure
// function of the description: the same seed gives the same keys and values, and the
// same sequence of changes. The model takes about 30 bytes for an address, so that a
// million of them is cheap, and encodes on demand.
//
// Services with the same namespace and name exist in several clusters, so that
// their backends merge: of each four consecutive services two are in every
// cluster, one in every second cluster, and one in this cluster alone.
//
// # Addresses
//
// Ranges depend on the cluster ID alone, so that any set of clusters can be
// run beside each other, also by different processes:
//
//	nodes      172.16.0.0/12, a /21 for each ID; above 2,046 nodes 100.64.0.0/10, a /19 for each ID (at most 8,190 nodes)
//	pods       10.ID.0.0/16 where it is large enough and the ID is at most 255 (about 50,000 addresses on few nodes)
//	           else 16.0.0.0/4, a /13 for each ID (about 450,000 addresses)
//	           else fd00:10:ID::/48 with a /64 for each node
//	frontends  198.18.0.0/15, the same in every cluster
//
// A node's pod range is at most a /24 unless its pods need more; of it the first
// address is the CiliumInternalIP, the second the health address, the third the
// ingress address, and pods follow. [Cluster.PodRange] replaces the range of
// the pods: a million IPv4 addresses in one cluster fit in 10.0.0.0/8.
package contents
