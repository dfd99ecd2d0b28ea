// Package claims says what a remote cluster may claim. Every remote cluster is another trust
// domain: whoever writes its keys may write any address, any identity, any namespace. Here are the
// rules, as pure functions, and the file that gives each cluster its share (docs/claims.md).
//
//   - [Special] has the networks that no pod can have.
//   - [Privileged] has the reserved identities that no remote endpoint can have.
//   - [Policy] is what a policy file grants to each cluster, [Grant] to one.
//
// Which claims lie inside the networks of others is known where all claims are,
// in pkg/ipcache, which asks these functions.
//
// Concurrency: everything is immutable, except [Current], which any goroutine may use.
package claims
