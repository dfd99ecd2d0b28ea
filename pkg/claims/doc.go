// Package claims says what a remote cluster may claim. Every remote cluster is another trust domain: the writers of
// its keys may write any address, any identity, any namespace. The package has the rules, as pure functions, and the
// file that gives each cluster its share (docs/claims.md).
//
//   - [Special] has the networks that no pod can have.
//   - [Privileged] has the reserved identities that no remote endpoint can have.
//   - [Policy] is what a policy file grants to each cluster, [Grant] to one.
//
// Only pkg/ipcache has all claims: with these functions, it finds the claims inside the networks of other clusters.
//
// Concurrency: everything is immutable, except [Current], which any goroutine may use.
package claims
