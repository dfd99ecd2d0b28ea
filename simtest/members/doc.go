// Package members runs a mesh of clusters that have no Cilium at all: each has an etcd server, a directory of manifests
// that describe it, and mesh-agent processes that operate it, mirror the other clusters, and run on its nodes. It is
// for trying out and for tests.
//
// Each etcd has the users and roles of a mesh: no process may do more than its mode needs, and no long-running process
// is root.
//
// All files of a cluster are below one directory:
//
//	manifests/    its description, which can be changed to see the effects
//	etcd-USER.yaml  the client file of its own etcd for one of its users
//	remotes/      client files of the other clusters' etcd servers, which mirrors read
//	mesh/         client files of the same names for its own etcd, which agents read
//	pki/          the authority of its etcd, and a certificate for each user
//	NAME.sock     the socket of the process NAME; NAME.log is its log
//
// Only one goroutine at a time may use a Mesh and its processes.
package members
