// Package remotecluster runs one cluster: it connects to its etcd, finds out
// what the cluster is, runs the sources that fill the tables, watches that all
// stays well, and starts again when it does not. Nearly always that is a remote
// cluster; with [OriginLocal] it is the own one, and the step in the middle
// falls away.
//
//	file → connect → cluster configuration → validate → canaries → sources
//	          ↑________________ session over, with the reason ________|
//
// A [Cluster] outlives its sessions, and so do its sources: what they hold is kept over
// a lost connection. When the context of Run ends, because the process stops or the file
// changed, nothing is withdrawn. When a session ends, everything is kept, its age is
// shown, and the disconnect policy says whether its service backends are used. When the
// file is gone, [Cluster.Drain] withdraws everything; then the cluster ID is free.
//
// What is read goes to a [Consumer]: the view of pkg/clustermesh, or the copy of
// pkg/mirror.
//
// What is said of a cluster is pure: events make one immutable state of another
// (state.go), and a judgment follows from the settings, the state, what the sources and
// the session say of themselves at that moment (facts.go), and the time (judge.go,
// problems.go). The rules are in testdata as scripts of events, with what is said after
// them.
//
// Staying away has one consequence, if wanted: after [Params].CacheTTL without
// contact the cluster's service backends are taken out of use (contact.go).
//
// Concurrency: Run and Drain belong to one goroutine, the cluster's owner.
// Every goroutine that Run starts has ended when it returns. Status may be
// called by any, at any time.
//
// # Design
//
// A session is one connection to one endpoint and ends with a reason. The store.Set of a
// source is the only record of which keys are known and of the position in etcd's
// history. On a new session the source resumes where the history allows, else it lists
// again and applies only the differences.
//
// The origin is a parameter. The own cluster is read from its kvstore
// (etcd.config, etcd.address) by the same controller and the same sources. For it
// there is no configuration and no canary to wait for, no ID is reserved, and its
// entries have the source kvstore, which is stronger than clustermesh. It travels
// as wire.Expect.Own: the decoders know from it what to ask of an entry, and the
// sources what to write. The own cluster is no item of /v1/clusters; status has it
// under kvstore.
//
// States are computed when they are read. Counts and freshness change with every
// batch, so a cluster's status is put together when it is asked for, from the
// controller and its sources, and is in no table.
//
// A cluster that returns is synced again within 10 seconds: pauses between
// attempts are 7.5 s at most, spread by chance, and begin short again after a
// session that lasted for a minute.
//
// Withholding filters the merge. The backends of a cluster that is silent for too
// long leave the global services, never the tables of what it exported. It begins
// Params.CacheTTL after the end of the last session that read the configuration,
// and ends when the cluster is synced again, not when it connects.
//
// Lists take turns, page by page and by cluster, and one that waits for a silent
// server gives its turn away: neither a frozen cluster nor an endless list delays
// others. Batches of events take turns likewise.
//
// What is not exported is known. A cluster's configuration says in which formats
// it exports services, and it is watched. A resource that is not exported is
// drained and counts as synced; it is as fresh as the configuration that says so.
// Endpoint slices are details where a cluster exports the older services as well:
// when their canary does not come within half a minute, the cluster is used
// without them and is degraded, with the reason. Where only slices are exported
// they are waited for. Service exports are optional: they are read to find
// clusters that disagree on the session affinity. An agent does not ask a cluster
// that announces none, and waits for those of no cluster (a mirror does, and
// copies them like everything else). A canary that does not come, rights that do
// not cover them or entries that are refused show in the freshness and the counts
// of the resource, and do not change the cluster's state.
//
// # Names
//
// What Cilium calls these things, and where they are here:
//
//	remoteCluster, RemoteCluster         Cluster
//	restartRemoteConnection              Cluster.Run, one loop for all sessions
//	Run(ctx, backend, config, ready)     a Source for each key family, which Run starts
//	Stop                                 the end of Run's context
//	Remove                               Cluster.Drain
//	RevokeCache, clustermesh-cache-ttl   Params.CacheTTL
//	GetClusterConfig                     a watch of the cluster configuration
//	WatchStoreManagerSync                sources wait for their canaries
//	WatchStoreManagerImmediate           the same without the capability syncedCanaries
//	ClusterSynced, SyncedWaitFn          Status: synced by resource
//	models.RemoteCluster                 Status
//	StatusFunc                           Cluster.Status
//	ClusterIDsManager                    IDs
//	remoteConnectionControllerGroup      Cluster.Run
package remotecluster
