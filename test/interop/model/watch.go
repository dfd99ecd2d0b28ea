package model

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
