// Package budget limits the resources that one remote cluster may use: how many keys and bytes of each resource are
// kept, how large a value may be, how many events a second are taken, and how long a list may take. A remote cluster is
// another trust domain; its writers and its etcd may send anything, but it gets no more than its budget, and the other
// clusters are not affected.
//
// Most of the package is data: [Parse] parses settings, [Budgets.Of] returns the budget of one cluster. pkg/store refuses
// entries over the budget while it reads, and internal/own/mirror while it copies.
//
// [Memory] counts the entries of all clusters while the agent runs.
//
// Concurrency: parsed values are immutable. Memory and its accounts may be used by several goroutines.
package budget
