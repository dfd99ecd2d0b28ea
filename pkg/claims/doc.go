// Package claims defines the claims that a remote cluster may make. Every remote cluster is another trust domain: the
// writers of its keys may write any address, any identity, any namespace. The package has the rules, as pure functions,
// and the policy file that grants each cluster its claims (docs/claims.md).
//
//   - [Special] has the networks that no pod can have.
//   - [Privileged] has the reserved identities that no remote endpoint can have.
//   - [Policy] has the claims that a policy file grants to each cluster, [Grant] those of one.
//
// Only pkg/ipcache has all claims: with these functions, it finds the claims inside the networks of other clusters.
//
// Concurrency: all types are immutable, except [Current], which any goroutine may use.
package claims
