// Package remotecluster runs one cluster: it connects to its etcd, reads the cluster configuration,
// runs the families that fill the tables, monitors the session, and connects again when the session
// ends. Nearly always that is a remote cluster; with [OriginLocal] it is the own cluster, and the
// steps between the connection and the families are skipped.
//
//	file → connect → cluster configuration → validate → canaries → families
//	          ↑________________ session over, with the reason ________|
//
// A [Cluster] outlives its sessions, and so do its families: they keep their data when the
// connection is lost. When the context of Run ends, because the process stops or the file
// changed, nothing is withdrawn. When a session ends, all data is kept, its age is
// shown, and the disconnect policy decides whether its service backends are used. When the
// file is removed, [Cluster.Drain] withdraws everything; then the cluster ID is free.
//
// The data is passed to a [Consumer]: the view of pkg/clustermesh, or the copy of internal/own/mirror.
//
// Pure functions compute the status of a cluster: each event makes a new immutable state of the
// previous one (state.go), and a judgment follows from the settings, the state, the facts that the
// families and the session report at that moment (facts.go), and the time (judge.go, problems.go).
// testdata has the rules as scripts of events, with the expected status after them.
//
// Apart from the policy, a lost contact may have one consequence, if it is configured:
// [Params].CacheTTL after the end of the last session that read the configuration, the cluster's
// service backends are withheld: they stay listed with the reason and get no traffic (contact.go),
// until the cluster is synced again.
//
// Concurrency: Run and Drain belong to one goroutine, the cluster's owner. Every goroutine that Run
// starts has ended when it returns. Status may be called by any goroutine, at any time.
//
// # Design
//
// A session is one connection to one endpoint and ends with a reason. Clusters with the same client
// file share it: pkg/clustermesh (pool.go) owns it, and a cluster has a handle. The store.Set of a
// family is the only record of the known keys and of the position in etcd's history. In a
// new session the family resumes where the history allows it; otherwise it lists again and
// applies only the differences.
//
// The own cluster is read from its kvstore by the same controller and the same families, with
// [OriginLocal] and wire.Expect.Own. It has no configuration and no canary to wait for, no ID is
// reserved, and its entries have the source kvstore, which is stronger than clustermesh.
//
// Counts and freshness change with every batch. So a cluster's status is computed on each call,
// from the controller and its families, and is in no table.
//
// A cluster that is reachable again is synced within 10 seconds: the pauses between attempts are
// 7.5 s at most, with jitter, and start short again after a session that lasted for a minute.
//
// Lists take turns, page by page and by cluster, and a list that waits for a silent
// server gives up its turn: neither a frozen cluster nor an endless list delays
// others. Batches of events take turns in the same way.
//
// A resource that a cluster's configuration does not announce is drained and counts as
// synced; it is as fresh as the configuration. Endpoint slices are details where a
// cluster exports the older services as well: when their canary does not appear within
// half a minute, the cluster is used without them and is degraded, with the reason.
// Service exports are optional: no agent waits for them (a mirror does), and their
// problems show only in the freshness and the counts of the resource.
package remotecluster
