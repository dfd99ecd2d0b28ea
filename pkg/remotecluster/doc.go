// Package remotecluster runs one cluster: it connects to its etcd, finds out what the cluster is,
// runs the sources that fill the tables, watches that all stays well, and starts again when it does
// not. Nearly always that is a remote cluster; with [OriginLocal] it is the own one, and the step
// in the middle falls away.
//
//	file → connect → cluster configuration → validate → canaries → sources
//	          ↑________________ session over, with the reason ________|
//
// A [Cluster] outlives its sessions, and so do its sources: what they hold is kept over
// a lost connection. When the context of Run ends, because the process stops or the file
// changed, nothing is withdrawn. When a session ends, everything is kept, its age is
// shown, and the disconnect policy says whether its service backends are used. When the
// file is gone, [Cluster.Drain] removes everything; then the cluster ID is free.
//
// What is read goes to a [Consumer]: the view of pkg/clustermesh, or the copy of internal/own/mirror.
//
// What is said of a cluster is pure: events make one immutable state of another (state.go), and a
// judgment follows from the settings, the state, what the sources and the session say of themselves
// at that moment (facts.go), and the time (judge.go, problems.go). The rules are in testdata as
// scripts of events, with what is said after them.
//
// Apart from the policy, staying away has one consequence, if wanted: [Params].CacheTTL
// after the last session that read the configuration, the cluster's service backends are withheld:
// they stay listed with the reason and get no traffic (contact.go), until it is synced again.
//
// Concurrency: Run and Drain belong to one goroutine, the cluster's owner. Every goroutine that Run
// starts has ended when it returns. Status may be called by any, at any time.
//
// # Design
//
// A session is one connection to one endpoint and ends with a reason. The store.Set of a
// source is the only record of which keys are known and of the position in etcd's
// history. On a new session the source resumes where the history allows, else it lists
// again and applies only the differences.
//
// The own cluster is read from its kvstore by the same controller and the same sources, with
// [OriginLocal] and wire.Expect.Own. There is no configuration and no canary to wait for, no ID is
// reserved, and its entries have the source kvstore, which is stronger than clustermesh.
//
// Counts and freshness change with every batch, so a cluster's status is put together
// when it is asked for, from the controller and its sources, and is in no table.
//
// A cluster that returns is synced again within 10 seconds: pauses between attempts are 7.5 s at
// most, spread by chance, and begin short again after a session that lasted for a minute.
//
// Lists take turns, page by page and by cluster, and one that waits for a silent
// server gives its turn away: neither a frozen cluster nor an endless list delays
// others. Batches of events take turns likewise.
//
// A resource that a cluster's configuration does not announce is drained and counts as
// synced; it is as fresh as the configuration. Endpoint slices are details where a
// cluster exports the older services as well: when their canary does not come within
// half a minute, the cluster is used without them and is degraded, with the reason.
// Service exports are optional: no agent waits for them (a mirror does), and what is
// wrong with them shows in the freshness and the counts of the resource alone.
package remotecluster
