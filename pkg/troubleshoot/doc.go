// Package troubleshoot checks one configuration of a kvstore step by step, from
// the client file to what the cluster says of itself, and says of each step that
// fails why, and what to do (spec kvstore.md §2.9). It needs no running
// agent, reads only, and never shows a secret.
//
// The steps look with the agent's own eyes: the client file's reader, the host
// aliases, the session of package kvstore. Only the TLS handshake is one of its
// own, which goes on after a certificate that the agent refuses, to find the next
// thing that is wrong too.
//
// # Concurrency
//
// [Run] may be called by any number of goroutines. It checks the endpoints of a
// configuration side by side and returns within [Timings.Total]. [All] runs
// several. Both return after every goroutine that they started.
//
// # Failure
//
// What goes wrong is what a [Report] is about: there are no errors. A step that
// cannot be tried because of another one is skipped and names it.
package troubleshoot
