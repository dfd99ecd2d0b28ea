// Package members runs a mesh of clusters that have no Cilium at all: each has an
// etcd server, a directory of manifests that describe it, and mesh-agent processes
// that operate it, mirror the other clusters, and run on its nodes. It is for
// trying out and for tests.
//
// Everything of a cluster is below one directory:
//
//	manifests/    what describes it; change it and see what becomes of it
//	etcd.yaml     the client file of its own etcd
//	remotes/      client files of the other clusters' etcd servers: what mirrors read
//	mesh/         client files of the same names that lead to its own etcd: what agents read
//	NAME.sock     where the process NAME answers; NAME.log is what it says
//
// A Mesh and its processes are used by one goroutine at a time.
package members
