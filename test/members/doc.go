// Package members tests clusters that have no Cilium, from the outside: etcd
// servers, manifests, and mesh-agent processes that operate, mirror and run.
package members
