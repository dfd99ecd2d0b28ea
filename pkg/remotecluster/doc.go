// Package remotecluster runs one cluster: it connects to its etcd, finds out
// what the cluster is, runs the sources that fill the tables, watches that all
// stays well, and starts again when it does not. Nearly always that is a remote
// cluster; with [OriginLocal] it is the own one, and the step in the middle
// falls away.
//
//	file → connect → cluster configuration → validate → canaries → sources
//	          ↑________________ session over, with the reason ________|
//
// A [Cluster] outlives its sessions, and so do its sources: what they hold is
// kept over a lost connection and never withdrawn for it. Three endings are
// told apart. Run ending because its context did: the process stops or the
// file changed, nothing is withdrawn. A session ending: everything is kept and
// its age is shown. [Cluster.Drain]: the file is gone, everything is withdrawn.
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
package remotecluster
