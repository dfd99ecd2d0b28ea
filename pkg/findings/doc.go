// Package findings keeps two tables about the view: conflicts, which exist until they are resolved, and recent events.
//
// [Findings] owns both tables. A [Watch] fills them by comparing the present state with the previous one: events come
// from the controllers' reports on their clusters and from the configuration of the agent, conflicts from the data of
// the clusters. For each kind of conflict there is a detector ([Kind] names it): it takes in the changes of one source
// and judges the objects that they touch. A conflict is derived from the clusters' current claims alone, independent of
// their order. It disappears as soon as those claims do. The cluster that counts is the first of its list. The rules
// are pure functions, and types without clock or lock; Watch only passes their arguments.
//
// Each event is also a line of the log, with its code. Only this package writes these lines.
//
// Concurrency: one goroutine runs the Watch; it writes, and readers take snapshots of the tables. When the Watch misses
// changes because there are too many, it looks at everything again; no conflict is lost by that, only the short-lived
// ones in between. Only the constructors can fail.
package findings
