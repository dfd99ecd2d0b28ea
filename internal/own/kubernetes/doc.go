// Package kubernetes reads our own cluster's objects from the Kubernetes API into
// the tables of pkg/local.
//
// Each kind is listed and then watched by a reflector of client-go, whose store is our table: there
// is no second copy. What nobody reads is removed before objects are compared, so that a node's
// heartbeat or a new resource version is no change. A list changes only what differs.
//
// While the API server is away everything is kept, and [local.Cluster.State] says until
// when services were current. When it is back, the watches go on where they were; what
// was deleted meanwhile goes then. While nothing changes they are current as of the latest
// bookmark; where none comes for [quiet], as of an answer of the API server from its etcd, after
// which the watch that is open brings nothing.
//
// The custom resources need not exist. A kind without a definition counts as
// listed and empty, and is looked for from time to time.
//
// Concurrency: [Source.Run] owns every goroutine and is called once. The other
// methods may be called by any goroutine.
package kubernetes
