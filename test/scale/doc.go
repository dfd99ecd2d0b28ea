// Package scale measures the agent on whole meshes. It has benchmarks only.
//
// Each figure comes from a process of its own: the simulated clusters' etcd
// servers run in one, the agent's client side in another, and the floor in a
// third, all on the same machine and beside each other. The floor is an etcd
// client that lists the same prefixes of the same servers in pages of 5,000 and
// decodes nothing.
package scale
