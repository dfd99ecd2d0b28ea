// Package converters holds what `mesh-agent operate` publishes of the objects of a Kubernetes API server beside what the
// clustermesh-apiserver of a release of Cilium publishes of the same objects, key by key and value by value. Both are
// programs that read one API server, and write to an etcd each.
package converters
