// Package sim runs simulated clusters: each is an embedded etcd server that
// holds what the clustermesh-apiserver of a real cluster would have written.
//
// A [Cluster] describes one cluster (name, ID, sizes, seed). [Open] starts its
// server, [Running.Load] writes the cluster configuration, then every node,
// service, endpoint slice, service export, identity and address, then the
// canaries and the heartbeat, all on leases as the apiserver does. [Running.Run]
// keeps the leases alive, repeats the heartbeat and makes changes at a steady
// rate. A [Mesh] is several of them with the directory of client files that an
// agent watches, and [RunCommand] starts a program on that directory. Clusters in
// mode [Cached] share one etcd, as KVStoreMesh writes it; the one in mode [Local]
// is the agent's own.
//
// # Faults
//
// While a cluster runs, its server can be killed, frozen, replaced and wiped, and
// its contents be changed, malformed and mended: see the methods of [Running] and
// [Mesh]. The same can be asked by name ([Commands], [Mesh.Do]), also by other
// processes over a socket ([Ask]). Readers reach a server through a gate, so that
// its endpoint is the same all the time. Nothing heals by itself, except
// that churn may write a changed key again.
//
// # Contents
//
// Contents are a pure function of the description: the same seed gives the
// same keys and values, and the same sequence of changes. The model in memory is
// the truth (about 30 bytes for an address, so that a million of them is cheap),
// and [Running.Contents] encodes it on demand, with what was broken laid over it: at
// rest it equals the etcd server's contents, and nothing is paid by those who never
// ask.
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
//	           else 240.0.0.0/4, a /13 for each ID (about 450,000 addresses)
//	           else fd00:10:ID::/48 with a /64 for each node
//	frontends  198.18.0.0/15, the same in every cluster
//
// A node's pod range is at most a /24 unless its pods need more; of it the first
// address is the CiliumInternalIP, the second the health address, the third the
// ingress address, and pods follow. [Cluster.PodRange] replaces the range of
// the pods: a million IPv4 addresses in one cluster fit in 10.0.0.0/8.
//
// # Concurrency properties
//
// All methods of [Running] and [Mesh] may be called from several goroutines.
// Clusters in one etcd wait for each other. Goroutines exist only inside Load, Run
// and RunCommand, which wait for them, and inside the etcd servers, their gates and
// clients, which Close ends.
//
// # Failure
//
// An error of etcd ends Load or Run with what was being done. The model changes
// before the transaction is committed, so after a failed commit Contents
// may be ahead of etcd; an ending context is no failure: what is under way is
// finished first. A server that was killed on purpose is no failure either: Run
// waits for the next one. What cannot be done is refused with a [*RefusedError], and
// then nothing has changed.
package sim
