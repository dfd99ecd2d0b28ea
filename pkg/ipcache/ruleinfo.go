package ipcache

import "github.com/mesh-agent/mesh-agent/pkg/codes"

// RuleInfo describes a rule that what a remote says may break.
type RuleInfo struct {
	Conflict codes.Code // of the conflict that claims of a cluster make
	Claim    codes.Code // of one claim, in an explanation
	Backends codes.Code // of the conflict that service backends of a cluster make; empty when they are not judged by it
	Topic    string     // the rule's name within the subject of a conflict
	Are      string     // what is so of what breaks it
	Text     string     // the rule itself
}

// Info describes a rule from RuleOwnNetwork on.
func (r Rule) Info() RuleInfo {
	switch r {
	case RuleOwnNetwork:
		return RuleInfo{
			codes.OwnNetworkClaimed, codes.ClaimInOwnNetwork, codes.OwnNetworkBackends,
			"own-network", "are inside the own networks", "the own networks are never a remote's",
		}
	case RuleSpecialUse:
		return RuleInfo{
			codes.SpecialUseClaimed, codes.ClaimSpecialUse, codes.SpecialUseBackends,
			"special-use", "are on addresses for special use", "nobody has addresses for special use",
		}
	case RuleForeignNetwork:
		return RuleInfo{
			codes.ForeignNetworkClaimed, codes.ClaimInForeignNetwork, "",
			"foreign-network", "are inside pod networks of other clusters", "an address in a pod network is of a cluster whose nodes announce it",
		}
	default:
		return RuleInfo{
			codes.ReservedIdentityClaimed, codes.ClaimReservedIdentity, "",
			"reserved-identity", "have privileged identities", "a remote does not vouch for privileged identities",
		}
	}
}
