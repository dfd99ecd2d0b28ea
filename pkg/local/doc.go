// Package local keeps what our own cluster says of itself: its Services, EndpointSlices, Nodes,
// Pods and the other objects that clusters tell each other about, as Kubernetes has them. What is
// published follows from these, and so does which backends a service of ours may use.
//
// A source fills the tables: a directory of manifests, or the Kubernetes API. No
// reader can tell which. There is one source in a process.
//
// Concurrency: the source is the one writer. Readers take snapshots of the tables and never wait.
//
// The own cluster has two sides: this description is what a source says of it now, its
// kvstore what its processes have published of that. A process that has both shows the
// services of the description, and the nodes, identities and addresses of the kvstore,
// where each node writes its own.
package local
