// Package kubernetes reads our own cluster's objects from the Kubernetes API into
// the tables of pkg/local.
//
// Each kind is listed and then watched by a reflector of client-go, whose store is our table: there is no second copy.
// Fields without a reader are removed before objects are compared, so that a node's heartbeat or a new resource version
// is no change. A list changes only what differs.
//
// While the API server does not answer, all objects are kept, and [local.Cluster.State] shows until when services were
// current. Afterwards the watches continue from their last position, and objects that were deleted meanwhile are
// removed. While nothing changes they are current as of the latest bookmark; where none comes for [Options.Quiet], as of an
// answer of the API server from its etcd, after which the watch that is open brings nothing.
//
// The custom resources need not exist. A kind without a definition counts as
// listed and empty, and is looked for from time to time.
//
// Concurrency: [Source.Run] owns every goroutine and is called once. The other
// methods may be called by any goroutine.
package kubernetes
