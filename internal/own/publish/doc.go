// Package publish translates the objects of the own cluster ([local.Cluster]) into the entries that other clusters
// read, and keeps these up to date.
//
// [Service], [EndpointSlice], [ServiceExport], [Node] and [CiliumNode] are pure functions from objects to values, by
// the rules of spec wire.md §1.2 to §1.5; [Exported] says which services are published. [Services], [Nodes], [Pods],
// [Endpoints] and [Identities] follow the tables and give a [Target] the value to publish for each name. [OwnServices] does
// the same for our own view: which backends of its own cluster the merge of services knows.
//
// Nothing is published before the source has listed all objects. The published set is marked complete, which permits
// deletions, only when [local.Cluster.IsWhole] is true, so that a restart withdraws nothing. An entry whose object is
// deleted, or no longer qualifies, is deleted at once.
//
// Concurrency: each Run is one goroutine, except that of Pods, which has one more for each pod that waits for its
// identity. They may run concurrently.
//
// The published value of a name is a pure function of one snapshot of all tables, so no order of events matters.
// Identities of pods take time: a pod keeps the identity that it has until the new one is there.
package publish
