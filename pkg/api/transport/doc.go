// Package transport is how HTTP is served to untrusted clients: where it is listened to, over
// TLS or not, who asks, how much of everything they may have at once, and answers without
// an end. What is answered is [github.com/mesh-agent/mesh-agent/pkg/api]'s.
//
// Concurrency: everything may be used by any number of goroutines, unless its comment
// says otherwise. Nothing is kept of a connection that has ended.
package transport
