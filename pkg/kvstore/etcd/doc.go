// Package etcd is the one place that talks to etcd: an engine of package kvstore.
//
// [Connect] makes a [Session] of a client file (package clientfile) and of [Options]: one
// endpoint, one connection, one etcd whose cluster ID is checked in every response.
// [Session.Run] watches over it. When it is over its owner connects again, to the next
// endpoint, or has [NewDurable] do so.
//
// All of a session may be used by any number of goroutines. gRPC reconnects by itself
// after a lost connection, with at most a few seconds between attempts; until then calls
// fail at once with the reason. Answers are checked before anything of them is used
// (answer.go); one that breaks the rules of etcd's protocol ends the session.
package etcd
