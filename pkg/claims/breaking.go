package claims

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/gaissmai/bart"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// rules finds the claims that break a rule (docs/claims.md). A suggestion does not grant claims that an agent would
// report.
type rules struct {
	all       []Seen
	own       bart.Table[struct{}]
	announced bart.Table[[]int] // the clusters that announce a network, by their index in all
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

// SaysWhose reports whether a pod network that a remote node announces is small enough to show the owner of the
// addresses in it. The networks of nodes are much smaller. A larger one would exclude other clusters, and after each
// change of it all claims in it would have to be judged again.
func SaysWhose(p netip.Prefix) bool {
	return p.Bits() >= byFamily(p.Addr(), 16, 48)
}

// judge returns those of a cluster's networks that break no rule, and calls note for the others. Claims of endpoints
// must not be in the pod networks of other clusters; claims of nodes may.
func (r *rules) judge(i int, networks []netip.Prefix, ofEndpoints bool, note func(why string, p netip.Prefix)) []netip.Prefix {
	return slices.DeleteFunc(slices.Clone(networks), func(p netip.Prefix) bool {
		why := r.breach(i, p, ofEndpoints)
		if why != "" {
			note(why, p)
		}
		return why != ""
	})
}

// breach returns the rule that a claim breaks; empty for none.
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

// whose reports whether a network overlaps a pod network that the own or a remote cluster announces.
func (r *rules) whose(p netip.Prefix) bool {
	return r.own.OverlapsPrefix(p) || r.announced.OverlapsPrefix(p)
}

// reserved returns the addresses that the cluster claims with an identity that a remote cluster cannot vouch for.
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
