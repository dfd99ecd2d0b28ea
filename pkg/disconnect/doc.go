// Package disconnect decides about the service backends of a cluster that goes quiet: they are kept, demoted (used
// only where no other cluster has any), or withdrawn. It does not decide about nodes, identities and addresses: they
// are kept as long as the cluster's file exists.
//
// A [Machine] gets [Evidence] about every cluster and returns the transitions that are due. It is pure: no clock, no
// goroutine, no lock, no I/O. A cluster that has never been synced is not judged, since nothing of it is used.
// Evidence is one of three:
//
//   - good: its services are known to be up to date at this moment, and its
//     writer is not silent. When it was so for [Delays].Restore without a
//     break, the cluster is back at [Keep].
//   - doubtful: its services could not be confirmed for longer than the machine's
//     patience, or its etcd answers but its writer's heartbeat has stayed away
//     for half of [Delays].Silence. Each step has its own delay, counted from the
//     last time that all was well.
//   - neither, as after one failed probe: this counts neither against the cluster, nor
//     for its return.
//
// Three rules keep it from doing harm:
//
//   - When more than half of the clusters are doubtful at once, the trouble is
//     probably on our side, and the policy is held: no cluster is demoted or
//     withdrawn until that is over. A cluster demoted before stays demoted.
//   - A transition needs a minimum waiting time, the patience. It is made only when at least that
//     long has passed since each of these: the doubt began, the cluster's last transition, the end
//     of the last hold, and the last gap in observation. In that time every cluster is probed again,
//     so that delays that ran out during the gap do not all end at once.
//   - Time without observation counts against no cluster.
//
// In small meshes: of two remote clusters one may fail; when both fail, the policy is held. With a single remote
// cluster the policy is never held: no second cluster shows whether the failure is on our side. There the rule of
// merging keeps services alive: a service's last usable backends are used in every state of their cluster
// (pkg/services).
//
// A heartbeat that was never seen is never missed: not every writer has one.
//
// Concurrency: a Machine belongs to one goroutine, or to its caller's lock.
package disconnect
