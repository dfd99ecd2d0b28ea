package findings

import (
	"slices"
	"strings"
)

// Kind says what a conflict is about, as interface.md names it.
type Kind string

// The kinds that are found, each with what finds it.
const (
	KindClusterID       Kind = "cluster-id"       // clusters: an ID that more than one cluster has
	KindClusterName     Kind = "cluster-name"     // names: a name to which more than one cluster answers
	KindIP              Kind = "ip"               // claims: a prefix that more than one cluster claims
	KindPodCIDR         Kind = "pod-cidr"         // networks: a pod network that is, or contains, another cluster's
	KindNodeIP          Kind = "node-ip"          // claims and networks: a node's address that another cluster has, as a node's or among its pods'
	KindClaim           Kind = "claim"            // strays: a remote cluster with claims that break a rule
	KindIdentity        Kind = "identity"         // clusters and duplicates: numbers out of range, or several for equal labels
	KindServicePort     Kind = "service-port"     // ports: a service whose ports have other names or protocols in another cluster
	KindServiceAffinity Kind = "service-affinity" // affinities: a service that clusters export with different affinities of sessions
)

// Kinds lists all kinds.
func Kinds() []Kind {
	return []Kind{KindClusterID, KindClusterName, KindIP, KindPodCIDR, KindNodeIP, KindClaim, KindIdentity, KindServicePort, KindServiceAffinity}
}

// verdicts are what some looks have led to: conflicts that there are, new or with
// other words, and keys of those that are over.
type verdicts struct {
	came []*Conflict
	gone []string
}

// sort puts them in an order that does not depend on how they were found.
func (v *verdicts) sort() {
	slices.SortFunc(v.came, func(a, b *Conflict) int { return strings.Compare(a.Key(), b.Key()) })
	slices.Sort(v.gone)
}
