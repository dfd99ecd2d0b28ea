package model

import "time"

// AllocateOpen are the arguments of Allocate.Open: the peer becomes one node's
// allocator of identities. It has no answer.
type AllocateOpen struct {
	Endpoint  string // of the etcd
	Node      string // what its references end in
	ClusterID uint32 // decides on the range and the mask, as in an agent
	LeaseTTL  time.Duration
	Sync      time.Duration // how often what is used is refreshed; 0 is as in an agent
}

// AllocateKey is the argument of Allocate.Acquire, Release, Get, Lock and Unlock. It
// is as it is stored.
type AllocateKey struct{ Key string }

// Allocated is the answer of Allocate.Acquire and Get.
type Allocated struct {
	ID              uint64 // 0: there is none
	IsNew, FirstUse bool
}

// Released is the answer of Allocate.Release.
type Released struct{ LastUse bool }

// Collected is the answer of Allocate.GC, a round of garbage collection: it goes on
// from the last one. Stale are the keys of the mappings that the next round may
// delete.
type Collected struct {
	Alive, Deleted int
	Stale          []string
}

// Locks is the answer of Allocate.LocksGC, a round of the collection of locks: it
// goes on from the last one.
type Locks struct{ Held []string }
