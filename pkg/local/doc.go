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
package local
