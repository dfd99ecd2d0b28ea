// Package ipcache holds whose address is what: every prefix that any cluster
// claims, with the claim that counts.
//
// Several claims may exist for one prefix: from two clusters, or from one that has a pod, a node
// and a CIDR there. Every claim is kept. The winner is the least of them by a fixed order (see
// [Entry.Compare]), so it depends on the claims alone and not on when they came; when it goes, the
// next one takes over in the same step. This differs from Cilium, where the last writer wins and
// either deletion removes the address, and where a mesh entry displaced by a local one does not
// come back.
//
// It is the hot path, with up to a million prefixes, and so not a statedb table:
// an ordered B-tree gives pages and cheap, consistent snapshots, a map and a
// routing table longest-prefix matches; all change in one step.
//
// Concurrency: everything may be called by any goroutine. [Cache.Apply] holds
// its lock for at most 256 changes at a time, so lookups get in between.
// Entries and snapshots are immutable. Nothing fails.
//
// The winners of all prefixes are in an ordered tree and a routing table, the losers in a second
// tree next to them, so that nearly every entry pays nothing for the rare contest. A conflict is a
// prefix that two clusters claim; one cluster may claim it in several ways.
package ipcache
