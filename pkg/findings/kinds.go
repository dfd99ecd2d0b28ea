package findings

import (
	"slices"
	"strings"
)

// Kind is the kind of a conflict, with its name in interface.md.
type Kind string

// The kinds that are found, each with its detector.
const (
	KindClusterID       Kind = "cluster-id"       // clusters: an ID that more than one cluster has
	KindClusterName     Kind = "cluster-name"     // names: a name for which more than one cluster answers
	KindIP              Kind = "ip"               // claims: a prefix that more than one cluster claims
	KindPodCIDR         Kind = "pod-cidr"         // networks: a pod network that equals or contains another cluster's
	KindNodeIP          Kind = "node-ip"          // claims and networks: a node's address that another cluster has too, as a node's or in a pod network
	KindClaim           Kind = "claim"            // strays: a remote cluster with claims that break a rule
	KindIdentity        Kind = "identity"         // clusters and duplicates: numbers out of range, or several for equal labels
	KindServicePort     Kind = "service-port"     // ports: a service whose ports have other names or protocols in another cluster
	KindServiceAffinity Kind = "service-affinity" // affinities: a service that clusters export with different session affinities
)

// Kinds lists all kinds.
func Kinds() []Kind {
	return []Kind{KindClusterID, KindClusterName, KindIP, KindPodCIDR, KindNodeIP, KindClaim, KindIdentity, KindServicePort, KindServiceAffinity}
}

// verdicts are the results of some looks: conflicts that are new or have changed, and keys of those that are over.
type verdicts struct {
	began []*Conflict
	ended []string
}

// sort sorts them, so that their order does not depend on how they were found.
func (v *verdicts) sort() {
	slices.SortFunc(v.began, func(a, b *Conflict) int { return strings.Compare(a.Key(), b.Key()) })
	slices.Sort(v.ended)
}
