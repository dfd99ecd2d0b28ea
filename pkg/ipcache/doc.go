// Package ipcache maps addresses to clusters: it has every prefix that any cluster claims, with the claim that counts.
//
// Several claims may exist for one prefix: from two clusters, or from one that has a pod, a node and a CIDR there.
// Every claim is kept. The winner is the first of them in a fixed order (see [Entry.Compare]), so it depends on the
// claims alone and not on the time of their arrival. When the winner is removed, the next claim replaces it in the same
// step. In Cilium, the last writer wins, either deletion removes the address, and a mesh entry displaced by a local one
// is not restored.
//
// It is the hot path, with up to a million prefixes, and so not a statedb table: an ordered B-tree is for pages and
// cheap, consistent snapshots, and a map and a routing table for longest-prefix matches. All change in one step.
//
// Concurrency: all functions and methods may be called by any goroutine. [Cache.Apply] holds its lock for at most 256
// changes at a time, so lookups are not blocked for long. Entries and snapshots are immutable. Only [ParsePrefix] can
// fail.
//
// The winners of all prefixes are in an ordered tree and a routing table, the losers in a separate tree, so that nearly
// every entry has no extra cost for the rare contest. A conflict is a prefix that two clusters claim; one cluster may
// claim it in several ways.
package ipcache
