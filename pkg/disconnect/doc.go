// Package disconnect decides about the service backends of a cluster that no longer answers: they are kept, demoted
// (used only where no other cluster has any), or withdrawn. It does not decide about nodes, identities and addresses:
// they are kept as long as the cluster's file exists.
//
// A [Machine] gets [Evidence] about every cluster and returns the transitions that are due. It is pure: no clock, no
// goroutine, no lock, no I/O. A cluster that has never been synced is not judged, since none of its data is used.
// Evidence is one of three:
//
//   - good: its services are known to be up to date at this moment, and its
//     writer is not silent. After [Delays].Restore of good evidence without a
//     break, the cluster returns to [Keep].
//   - doubtful: its services could not be confirmed for longer than the machine's
//     patience, or its etcd answers but its writer's heartbeat has been missing
//     for half of [Delays].Silence. Each step has its own delay, counted from the
//     last time that all was well.
//   - neither, as after one failed probe: this counts neither against the cluster, nor
//     for its return.
//
// Three rules limit the harm that it can do:
//
//   - When more than half of the clusters are doubtful at once, the cause is
//     probably local, and the policy is held: no cluster is demoted or
//     withdrawn until that is over. A cluster demoted before stays demoted.
//   - A transition needs a minimum waiting time, the patience. It is made only when at least that
//     long has passed since each of these: the doubt began, the cluster's last transition, the end
//     of the last hold, and the last gap in observation. In that time every cluster is probed again,
//     so that delays that expired during the gap do not all end at once.
//   - Time without observation counts against no cluster.
//
// In small meshes: of two remote clusters one may fail; when both fail, the policy is held. With a single remote
// cluster the policy is never held: no second cluster shows whether the cause is local. In this case the rule of
// merging keeps services available: a service's last usable backends are used in every state of their cluster
// (pkg/services).
//
// A heartbeat that was never seen is never missing: not every writer has one.
//
// Concurrency: a Machine must be used by one goroutine, or with a lock of its caller.
package disconnect
