// Package operate does what only one process per cluster may do (wire.md §0, §1.6, §1.9, §1.10,
// §2.1, §5):
//
//   - Always: it publishes the cluster configuration, the heartbeat, services in both formats,
//     service exports and the canaries of all of them, and it collects abandoned locks.
//   - If Cilium keeps identities as CiliumIdentities, it publishes them, but never overwrites a
//     mapping that an allocator wrote. Otherwise it collects unused identities.
//   - On request: it publishes the nodes and addresses of a cluster whose agents do not write to its
//     kvstore, and it creates the etcd users and roles of a mesh.
//
// Concurrency: [Operator.Run] owns every goroutine. All other methods may be called
// by any, at any time.
//
// # Design
//
// Each mode has its own user in etcd. Package rights (rights.Of) holds the roles as data: the ranges
// that a node, an operator and a mirror write, and no others; the tests of
// internal/own/operate, internal/own/register, internal/own/mirror and test/members run on an etcd with these
// users. A new key that is written needs its range there (docs/rights.md).
//
// Each key has one writer. An agent writes its node, the addresses of its pods, and identities with its references; the
// leader of operate the configuration, the heartbeat, services, slices, exports and their canaries, and with
// --publish-nodes-and-addresses, where no agent writes (CRD mode), also nodes, addresses and identities with theirs,
// after it has seen that no node refers to an identity. An allocator's mapping has no lease: a syncstore.Sync with
// CreateOnly neither replaces nor deletes it, which each write proves in its own transaction. The leader of mirror
// writes the keys below cilium/cache/, the other clusters' configurations and their canaries. The Sync of a prefix
// with several writers is Shared: it only sees the names that it was given, and with Sole the keys with its leases.
//
// One leader, in terms. A lock in the own kvstore, with a lease of 25 s, decides which process operates and which
// mirrors. The knowledge of a leader belongs to its term and ends with it; the next leader compares the existing keys
// with the wanted ones. Each of its writes carries the proof that the lock is still held (Holding), in the same
// transaction: a process that was frozen and continues writes nothing. The keys of a leader that dies outlive it by
// their lease, within which the next one takes them over. A standby is ready after 10 s.
package operate
