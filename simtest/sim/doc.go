// Package sim runs simulated clusters: each is an embedded etcd server that
// holds the keys that the clustermesh-apiserver of a real cluster would write.
//
// Package [contents] has these keys and their changes. [Open] starts the server of a cluster,
// [Running.Load] writes the cluster configuration, then every node, service, endpoint slice,
// service export, identity and address, then the canaries and the heartbeat, all on leases as the
// apiserver does. [Running.Run] keeps the leases alive, repeats the heartbeat and makes changes at
// a steady rate. A [Mesh] is several of them with the directory of client files that an agent
// watches. Clusters in mode [contents.Cached] share one etcd, as KVStoreMesh writes it; the one in
// mode [contents.Local] is the agent's own.
//
// # Faults
//
// While a cluster runs, its server can be killed, frozen, replaced and wiped, and its contents be
// changed, malformed and mended: see the methods of [Running] and [Mesh]. Readers reach a server
// through a gate, so that its endpoint is the same all the time. Nothing heals by itself, except
// that churn may write a changed key again. [Running.Contents] is the model with the broken keys
// applied to it: at rest it equals the etcd server's contents.
//
// # Concurrency properties
//
// All methods of [Running] and [Mesh] may be called from several goroutines. Clusters in one etcd
// wait for each other. Goroutines exist only inside Load and Run, which wait for them, and inside
// the etcd servers, their gates and clients, which Close ends.
//
// # Failure
//
// An error of etcd ends Load or Run; the returned error names the operation. The model changes before the
// transaction is committed, so after a failed commit Contents may be ahead of etcd; an ending
// context is no failure: the current operation is finished first. A server that was killed on purpose
// is no failure either: Run waits for the next one. An impossible request is refused with a
// [*RefusedError], and then nothing has changed.
package sim
