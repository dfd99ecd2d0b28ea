// Package findings keeps what is worth telling about the view: conflicts, which
// are there until they are resolved, and events, which are what happened lately.
//
// [Findings] owns both tables. A [Watch] derives them, by comparing what is with what was: events
// from what the controllers say of their clusters and from what the agent is configured with,
// conflicts from what the clusters say. For each kind of the latter there is a detector ([Kind]
// says which): it takes in the changes of one source and judges what they touch. A conflict is
// derived from the clusters' current claims alone, independent of their order. It disappears as soon
// as those claims do. The cluster that counts is the first of its list. The rules are pure functions and cores without
// clock and lock; Watch only brings them their arguments.
//
// Each event is also a line of the log, with its code, and nobody else writes it.
//
// Concurrency: one goroutine runs the Watch; it writes, and readers take snapshots of the tables.
// When a flood of changes passes it by, it looks at everything again; no conflict is lost by that,
// only the short-lived ones in between. Nothing here can fail.
package findings
