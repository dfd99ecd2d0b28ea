// Package etcd is the only package that connects to etcd: an engine of package kvstore.
//
// [Connect] makes a [Session] from a client file (package clientfile) and [Options]: one
// endpoint, one connection, one etcd whose cluster ID is checked in every response.
// [Session.Run] is its watchdog. When the session is over, its owner connects again, to the
// next endpoint, or uses [NewDurable] for that.
//
// Any number of goroutines may use a session. After a lost connection gRPC reconnects
// automatically, with at most a few seconds between attempts; until then calls fail at once
// with the reason. Answers are checked before any part of them is used (answer.go); an answer
// that breaks the rules of etcd's protocol ends the session.
package etcd
