package model

import "time"

// A peer speaks JSON-RPC (net/rpc/jsonrpc) over its standard input and output, and
// logs to its standard error, a JSON object a line. The types below are the arguments
// and answers of its calls. Its role is its first command-line argument.

// KV is a key with its value.
type KV struct {
	Key   string
	Value []byte
}

// Expect is what a reader expects of the cluster that it reads.
type Expect struct {
	Cluster   string
	ClusterID uint32
}

// About is what a peer says of itself: Peer.About.
type About struct {
	Release string // such as 1.20.2
	Kinds   []Kind // those that the release knows
}

// EncodeReply is the answer of Codec.Encode, whose argument is Objects: their keys
// and values, kind by kind, in order.
type EncodeReply struct{ Entries []KV }

// DecodeArgs are the arguments of Codec.Decode.
type DecodeArgs struct {
	Expect  Expect
	Entries []KV
}

// DecodeReply is the answer of Codec.Decode: what the release's readers made of the
// entries, in order, and what they refused.
type DecodeReply struct {
	Objects  Objects
	Rejected []Rejected
}

// DecodeEachReply is the answer of Codec.DecodeEach, which has the same arguments:
// the result of each entry alone.
type DecodeEachReply struct{ Each []DecodeReply }

// Rejected is an entry that was refused.
type Rejected struct{ Key, Error string }

// PublishArgs are the arguments of Publish.Open: the published cluster with its
// configuration. Publish.Put and Publish.Delete have Objects as their arguments; Delete needs only
// their names. Publish.Synced has a list of kinds. They do not wait for the etcd.
type PublishArgs struct {
	Flags  []string // Cilium's own, such as --kvstore-opt=etcd.config=/etc/client
	Config ClusterConfig
}

// ReadArgs are the arguments of Read.Open: the cluster that the reader belongs to.
type ReadArgs struct {
	Cluster              string
	ClusterID            uint32
	MaxConnectedClusters uint32
	Dir                  string            // of the client configurations, one for each remote
	Options              map[string]string // --kvstore-opt
}

// Read.Clusters returns a reader's status of the clusters that it reads, by
// name. Read.View, whose argument is a kind, returns the objects of the kind that it
// holds. Addresses are without a cluster, because one cache has those of all clusters.

// RemoteCluster is what a reader says of a cluster that it reads.
type RemoteCluster struct {
	Name             string
	Connected, Ready bool
	Failures         int64          // reconnections
	Status           string         // of the connection, in words
	Entries          map[Kind]int64 // that it counts
	Synced           map[Kind]bool
	Config           *ClusterConfig // nil before it was read; how many clusters may be connected is not said
}

// WatchArgs are the arguments of Watch.Open: a client configuration, and the cluster
// to read from its etcd, which is the cluster's own or one that has a copy.
type WatchArgs struct {
	File   string
	Expect Expect
	Cached bool
}

// WatchCountReply is the answer of Watch.Count, which is less work than Watch.View.
type WatchCountReply struct{ Objects int }

// WatchReply is the answer of Watch.View: what the stores hold now, and the kinds of
// which they have seen all that there was.
type WatchReply struct {
	Objects Objects
	Synced  []Kind
}

// AllocateOpen are the arguments of Allocate.Open: the peer becomes one node's
// allocator of identities. It has no answer.
type AllocateOpen struct {
	Endpoint  string // of the etcd
	Node      string // what its references end in
	ClusterID uint32 // decides on the range and the mask, as in an agent
	LeaseTTL  time.Duration
	Sync      time.Duration // how often the used keys are refreshed; 0 is as in an agent
}

// AllocateKey is the argument of Allocate.Acquire, Release, Get, Lock and Unlock, in
// its stored form.
type AllocateKey struct{ Key string }

// Allocated is the answer of Allocate.Acquire and Get.
type Allocated struct {
	ID              uint64 // 0: there is none
	IsNew, FirstUse bool
}

// Released is the answer of Allocate.Release.
type Released struct{ LastUse bool }

// Collected is the answer of Allocate.GC, a round of garbage collection, which continues from the
// last one. Stale are the keys of the mappings that the next round may delete.
type Collected struct {
	Alive, Deleted int
	Stale          []string
}

// Locks is the answer of Allocate.LocksGC, a round of the collection of locks, which
// continues from the last one.
type Locks struct{ Held []string }
