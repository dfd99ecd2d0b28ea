package claims

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/gaissmai/bart"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// rules tells which of the claims that were seen break a rule (docs/claims.md):
// what an agent reports, a suggestion does not grant.
type rules struct {
	all       []Seen
	own       bart.Table[struct{}]
	announced bart.Table[[]int] // by which clusters
}

func newRules(all []Seen, own []netip.Prefix) *rules {
	r := &rules{all: all}
	for _, p := range own {
		r.own.Insert(p, struct{}{})
	}
	for i := range all {
		for _, p := range all[i].Pods {
			if _, special := Special(p); special || !SaysWhose(p) {
				continue
			}
			if of, _ := r.announced.Get(p); !slices.Contains(of, i) {
				r.announced.Insert(p, append(slices.Clone(of), i))
			}
		}
	}
	return r
}

// SaysWhose reports whether a pod network that the node of a remote announces is small enough to show
// whose the addresses inside are. Nodes have much less; who announces more would shut out others,
// and have everything inside judged again whenever it changes.
func SaysWhose(p netip.Prefix) bool {
	return p.Bits() >= byFamily(p.Addr(), 16, 48)
}

// judge returns those of a cluster's networks that break no rule, and notes the others. Claims of
// endpoints are judged as such; what nodes have may be anywhere but in the own networks.
func (r *rules) judge(i int, networks []netip.Prefix, ofEndpoints bool, note func(why string, p netip.Prefix)) []netip.Prefix {
	return slices.DeleteFunc(slices.Clone(networks), func(p netip.Prefix) bool {
		why := r.breach(i, p, ofEndpoints)
		if why != "" {
			note(why, p)
		}
		return why != ""
	})
}

// breach says which rule a claim breaks; empty for none.
func (r *rules) breach(i int, p netip.Prefix, ofEndpoint bool) string {
	if r.own.OverlapsPrefix(p) {
		return fmt.Sprintf("%s, in a network of the own cluster", codes.OwnNetworkClaimed)
	}
	if _, is := Special(p); is {
		return fmt.Sprintf("%s, for special use (docs/claims.md)", codes.SpecialUseClaimed)
	}
	if !ofEndpoint {
		return ""
	}
	whose := ""
	for network, of := range r.announced.Supernets(p) { // the longest first
		if slices.Contains(of, i) {
			return ""
		}
		if whose == "" {
			whose = fmt.Sprintf("%s, in %s of %s", codes.ForeignNetworkClaimed, network, r.all[of[0]].Name)
		}
	}
	return whose
}

// whose reports whether a network is, in part, a pod network that somebody announces.
func (r *rules) whose(p netip.Prefix) bool {
	return r.own.OverlapsPrefix(p) || r.announced.OverlapsPrefix(p)
}

// reserved are the addresses that the cluster claims with an identity that it cannot vouch for.
func (s *Seen) reserved() []netip.Prefix {
	var all []netip.Prefix
	atNode := make(map[netip.Addr]bool, len(s.Nodes))
	for _, a := range s.Nodes {
		atNode[a] = true
	}
	for _, c := range s.Privileged {
		if Privileged(c.Identity, c.Prefix.IsSingleIP() && atNode[c.Prefix.Addr()]) {
			all = append(all, c.Prefix)
		}
	}
	return all
}
