package ipcache

import (
	"fmt"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// Rule is the rule that decided between two claims on one prefix, or that a claim breaks.
type Rule uint8

// The rules that decide between two claims, in the order in which they are applied.
const (
	_           Rule = iota
	RuleSource       // the stronger source
	RuleKind         // the kind of the claim
	RuleCluster      // the lower cluster ID
	RuleOwner        // the owner within a cluster
)

// The rules that a remote claim may break, in the order in which they are applied, before those that decide between
// claims (docs/claims.md).
const (
	RuleOwnNetwork       Rule = iota + RuleOwner + 1 // networks of the own cluster are not for remotes
	RuleSpecialUse                                   // addresses for special use are for no cluster
	RuleForeignNetwork                               // a network that a cluster's nodes announce is only for this cluster
	RuleReservedIdentity                             // remotes cannot claim privileged identities
)

// RuleInfo describes a rule that data of a remote may break.
type RuleInfo struct {
	Conflict codes.Code // of the conflict for claims of a cluster
	Claim    codes.Code // of one claim, in an explanation
	Backends codes.Code // of the conflict for service backends of a cluster; empty when the rule is not for backends
	Topic    string     // the rule's name within the subject of a conflict
	Is, Are  string     // the predicate of one claim, or of several, that break it
	Text     string     // the rule itself
}

// Info describes a rule from RuleOwnNetwork on.
func (r Rule) Info() RuleInfo {
	switch r {
	case RuleOwnNetwork:
		return RuleInfo{
			codes.OwnNetworkClaimed, codes.ClaimInOwnNetwork, codes.OwnNetworkBackends,
			"own-network", "is inside the own networks", "are inside the own networks", "the own networks are never a remote's",
		}
	case RuleSpecialUse:
		return RuleInfo{
			codes.SpecialUseClaimed, codes.ClaimSpecialUse, codes.SpecialUseBackends,
			"special-use", "is on an address for special use", "are on addresses for special use", "addresses for special use belong to no cluster",
		}
	case RuleForeignNetwork:
		return RuleInfo{
			codes.ForeignNetworkClaimed, codes.ClaimInForeignNetwork, "",
			"foreign-network", "is inside a pod network of another cluster", "are inside pod networks of other clusters", "an address in a pod network is of a cluster whose nodes announce it",
		}
	default:
		return RuleInfo{
			codes.ReservedIdentityClaimed, codes.ClaimReservedIdentity, "",
			"reserved-identity", "has a privileged identity", "have privileged identities", "a remote cluster must not claim privileged identities",
		}
	}
}

// Lost returns the rule that made the claim lose against the winner of its prefix.
func (e *Entry) Lost(winner *Entry) Rule {
	_, rule := winner.compare(e)
	return rule
}

// Weakness returns a text with the rule that makes a claim weaker than another one to the same prefix.
func (e *Entry) Weakness(strong *Entry) string {
	switch e.Lost(strong) {
	case RuleSource:
		return fmt.Sprintf("weaker source: %s precedes %s", strong.Source(), e.Source())
	case RuleKind:
		return fmt.Sprintf("%s precedes %s", strong.Kind().phrase(), e.Kind().phrase())
	case RuleCluster:
		if a, b := strong.Cluster(), e.Cluster(); a.ID == b.ID {
			return fmt.Sprintf("cluster %s precedes %s", a.Name, b.Name)
		}
		return fmt.Sprintf("cluster ID %d precedes %d", strong.Cluster().ID, e.Cluster().ID)
	default:
		if strong.NodeName() == "" {
			return "the same cluster claims it twice, with other host bits"
		}
		return fmt.Sprintf("node %s precedes %s", strong.NodeName(), e.NodeName())
	}
}

// phrase returns the name of the kind for use in a sentence.
func (k Kind) phrase() string {
	phrases := [...]string{"a host entry", "a CIDR", "a node's address", "a pod CIDR", "a health address", "an ingress address"}
	if int(k) >= len(phrases) {
		return "a " + k.String()
	}
	return phrases[k]
}
