// Package faults drives a whole mesh through random operations and faults, and
// compares what it shows with a model. It has tests only.
//
// Four clusters, each an etcd server in a process of its own behind TCP proxies,
// are followed by a [clustermesh.Mesh] with real tables. A plan, made from a
// seed before anything happens, is a list of steps: operations on the contents
// of a cluster, faults that strike one, and their ends. After each of them
//
//   - the view equals the model: what the contents of the servers make by the
//     rules of the wire format and of the merge, written down a second time,
//     naively, from the raw values;
//   - of a cluster that is merely away nothing is withdrawn;
//   - whatever nobody wrote to is the same object as before, in every cluster;
//   - all the while, what the status says to be known as of some time includes
//     every canary that etcd had acknowledged before it.
//
// A run prints its seed, and one that fails the steps since view and model agreed last.
// To repeat one, and to run longer:
//
//	go test ./test/faults -run Faults -v -faults.seed=7
//	go test ./test/faults -run Faults -v -timeout 5h -faults.ops=100000 -faults.faults=2000
//
// A second test judges what the status says of freshness. Three clusters are written to all the
// time while faults strike; everything that their etcds ever had is recorded beside the mesh,
// revision by revision. Each time the status or the view says something new, both are kept. When a
// resource is said to be known as of some time, each of its keys must show what it had at a
// revision that was not overtaken by an acknowledged write before that time, and that was not
// written after the view was read. As of a time when nobody could be asked nothing is known until
// somebody has been, and what is synced was confirmed within the bound. A seed repeats what is
// written and which faults strike, not the moments at which they do.
//
//	go test ./test/faults -run Freshness -v -timeout 1h -freshness.claims=100000
//	go test ./test/faults -run Freshness -v -freshness.seed=7
package faults
