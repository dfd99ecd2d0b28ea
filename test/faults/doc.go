// Package faults drives a whole mesh through random operations and faults, and
// compares what it shows with a model. It has tests only.
//
// Four clusters, each an etcd server in a process of its own behind TCP proxies,
// are followed by [clustermesh.Remotes] with real tables. A plan, made from a
// seed before anything happens, is a list of steps: operations on the contents
// of a cluster, faults that strike one, and their ends. After each of them
//
//   - the view equals the model: what the contents of the servers make by the
//     rules of the wire format and of the merge, written down a second time,
//     naively, from the raw values;
//   - the entries of a cluster that is only disconnected stay;
//   - an object without a write is the same object as before, in every cluster;
//   - at all times, the entries that the status reports as known as of a time include
//     every canary that etcd had acknowledged before it.
//
// A run prints its seed. A run that fails also prints the steps since the last agreement of view and model.
// To repeat one, and to run longer:
//
//	go test ./test/faults -run Faults -v -faults.seed=7
//	go test ./test/faults -run Faults -v -timeout 5h -faults.ops=100000 -faults.faults=2000
//
// A second test judges the freshness in the status. Three clusters get writes all the
// time while faults strike. A recorder outside of the mesh keeps all contents of their etcds,
// revision by revision. Each change of the status or the view is kept, with both. When the status
// reports a resource as known as of a time, each of its keys must have its value at a
// revision that no acknowledged write before that time had replaced, and that was not
// written after the view was read. No resource is known as of a time when its etcd could not be
// asked, until it was asked again. A synced resource was confirmed within the bound. A seed repeats
// the writes and the faults, not their times.
//
//	go test ./test/faults -run Freshness -v -timeout 1h -freshness.claims=100000
//	go test ./test/faults -run Freshness -v -freshness.seed=7
package faults
