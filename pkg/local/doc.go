// Package local keeps what our own cluster says of itself: its Services,
// EndpointSlices, Nodes, Pods and the other objects that clusters tell each other
// about, as Kubernetes has them. What is published follows from these, and so does
// which backends a service of ours may use.
//
// A source fills the tables: a directory of manifests, or the Kubernetes API. No
// reader can tell which. There is one source in a process.
//
// Concurrency: the source is the one writer. Readers take snapshots of the tables
// and never wait.
//
// # Design
//
// The own cluster has two sides. Its description (this package) is what a source
// says of it now; its kvstore is what its processes have published of that. A
// process that has both shows the services of the description, which are all of
// them, and the nodes, identities and addresses of the kvstore, where each node
// writes its own. What it publishes follows from the description alone. A mistake
// in a manifest leaves in force what was said before, on both sides.
package local
