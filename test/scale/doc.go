// Package scale measures the agent on whole meshes.
//
// The agent is the real program, run as in a DaemonSet: its time begins with its process and ends
// when /readyz says 200. The simulated clusters' etcd servers run in a process of their own, and
// the floor in a third, all on the same machine and in turns. The floor is an etcd client that
// lists the same prefixes of the same servers, as many at a time as the agent and in pages of
// 5,000, and decodes nothing.
//
// The scenarios are data; the benchmark measures them with the bounds that they have, and a test
// that is part of every run measures a small one with bounds that a busy machine cannot break.
package scale
