// Package budget says how much one remote cluster may cost: how many keys and bytes of each
// resource are kept, how large a value may be, how many events a second are taken, and how long a
// list may run. A remote cluster is another trust domain; whatever its writers or its etcd send, it
// gets no more than its budget, and the other clusters do not notice.
//
// The package is data: [Parse] reads settings, [Budgets.Of] answers for one cluster. What is over
// budget is refused by pkg/store while reading, and by internal/own/mirror while copying.
//
// Concurrency: values are immutable once they were parsed.
package budget
