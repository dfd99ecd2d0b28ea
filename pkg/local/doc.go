// Package local keeps the description of the own cluster: its Services, EndpointSlices, Nodes, Pods and the other
// Kubernetes objects from which clusters publish entries. The published entries, and the backends that a service of the
// own cluster may use, are derived from them.
//
// A source fills the tables: a directory of manifests, or the Kubernetes API. Readers cannot distinguish them. There is
// one source in a process.
//
// Concurrency: the source is the only writer. Readers take snapshots of the tables and never wait.
//
// The own cluster has two sides: this description is its present state as the source reads it; its kvstore has the
// entries that its processes have published about it. A process that has both uses the services of the description, and
// the nodes, identities and addresses of the kvstore, where each node writes its own.
package local
