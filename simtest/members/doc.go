// Package members runs a mesh of clusters that have no Cilium at all: each has an etcd server, a
// directory of manifests that describe it, and mesh-agent processes that operate it, mirror the
// other clusters, and run on its nodes. It is for trying out and for tests.
//
// Each etcd has the users and roles of a mesh: no process may do more than its mode
// needs, and none that keeps running is root.
//
// Everything of a cluster is below one directory:
//
//	manifests/    what describes it; change it and see what becomes of it
//	etcd-USER.yaml  the client file of its own etcd for one of its users
//	remotes/      client files of the other clusters' etcd servers: what mirrors read
//	mesh/         client files of the same names that lead to its own etcd: what agents read
//	pki/          the authority of its etcd, and a certificate for each user
//	NAME.sock     where the process NAME answers; NAME.log is what it says
//
// A Mesh and its processes are used by one goroutine at a time.
package members
