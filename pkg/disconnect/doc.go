// Package disconnect decides what becomes of the service backends of a cluster
// that goes quiet: they are kept, demoted (used only where no other cluster has
// any), or withdrawn. Nodes, identities and addresses are none of its business:
// they are kept for as long as the cluster's file is there.
//
// A [Machine] is fed with [Evidence] about every cluster and says which transitions are due. It is
// pure: no clock, no goroutine, no lock, no I/O. A cluster that has never been synced is not
// judged, since nothing of it is used. Evidence is one of three:
//
//   - good: its services are known to be up to date at this moment, and its
//     writer has been heard of. When it was so for [Delays].Restore without a
//     break, the cluster is back at [Keep].
//   - doubtful: its services could not be confirmed for longer than the machine's
//     patience, or its etcd answers but its writer's heartbeat has stayed away
//     for half of [Delays].Silence. Each step has its own delay, counted from the
//     last time that all was well.
//   - neither, as after one failed probe: nothing is held against the cluster, and
//     nothing counts for its return.
//
// Three rules keep it from doing harm:
//
//   - When more than half of the clusters are doubtful at once, the trouble is
//     probably on our side, and the policy is held: no cluster is demoted or
//     withdrawn until that is over. What was demoted before stays so.
//   - A transition needs a minimum waiting time, the patience. It is made only when at least that
//     long has passed since each of these: the doubt began, the cluster's last transition, the end
//     of the last hold, and the last gap in observation. In that time every cluster is probed again,
//     so that delays that ran out during the gap do not all end at once.
//   - Time without observation counts against no cluster.
//
// What holds in small meshes: of two remote clusters one may fail, and when both do the policy is
// held. A single one cannot be distinguished from our own side, so it is never held for want of a
// second opinion; there the rule of merging is what keeps services alive: a service's last usable
// backends are used whatever their cluster's state is (pkg/services).
//
// A heartbeat that was never seen is never missed: not every writer has one.
//
// Concurrency: a Machine belongs to one goroutine, or to its caller's lock.
package disconnect
