// Package findings keeps what is worth telling about the view: conflicts, which
// are there until they are resolved, and events, which are what happened lately.
//
// [Findings] owns both tables. A [Watch] derives them from the address cache and
// from what the controllers say of their clusters, by comparing what is with
// what was: a conflict is what the claims of clusters make, and never kept when
// they have gone. The rules are pure functions; Watch only brings them their
// arguments.
//
// Concurrency: one goroutine runs the Watch; it writes, and readers take
// snapshots of the tables. When a flood of changes passes it by, it looks at
// everything again; no conflict is lost by that, only the short-lived ones in
// between. Nothing here can fail.
package findings
