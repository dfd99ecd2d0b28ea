package reasons

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Address explains which cluster owns an address, from the result of a lookup. The first steps are about the claims,
// in their order, and then about those that do not count.
func Address(v *Facts, addr netip.Addr, found ipcache.Found) api.Explanation {
	chain, strays := found.Claims, found.Strays
	x := api.Explanation{Steps: make([]api.Step, 0, len(chain))}
	var first *ipcache.Entry // the winner of the prefix at hand
	for i, e := range chain {
		if first == nil || first.Prefix() != e.Prefix() {
			first = e
		}
		step := v.claim(e)
		step.Code, step.Text = claimStep(chain, first, i)
		for _, s := range strays {
			if s.Entry == e {
				step.Code = s.Breach.Rule.Info().Claim
				step.Text += fmt.Sprintf("; but %s: with --claim-policy=enforce it does not count", s.Breach)
			}
		}
		x.Steps = append(x.Steps, step)
	}
	unknown, steps := v.unknownClaims()
	x.Steps = append(x.Steps, slices.Concat(v.barred(strays), unreported(found.Unreported), v.refusals(addr), steps)...)
	x.Verdict = addressVerdict(addr, chain, unknown)
	if len(chain) > 0 && x.Steps[0].Code != codes.ClaimWon {
		x.Verdict.Text += ", whose claim breaks a rule: see the first step"
	}
	return x
}

// unknownClaims returns the steps about clusters that may claim an address without this agent knowing it, and names
// these clusters; empty for none.
func (v *Facts) unknownClaims() (unknown string, steps []api.Step) {
	var unconfirmed, refusing []string
	for _, cluster := range v.names() {
		at, now := v.asOf(cluster, wire.IPs, wire.Nodes)
		// A claim that the policy file refuses would not count in any case.
		refused := v.refusedBut([]wire.Reason{wire.ReasonPolicy}, cluster, wire.IPs, wire.Nodes)
		step := api.Step{Cluster: cluster, Keys: []api.Key{}, AsOf: at}
		if !now {
			unconfirmed = append(unconfirmed, cluster)
			step.Code, step.Text = codes.ClaimsUnknown, "may claim it now, or may have withdrawn a claim: its addresses: "+v.unconfirmed(cluster, at)
			steps = append(steps, step)
		}
		if refused != "" {
			refusing = append(refusing, cluster)
			step.Code, step.Text = codes.ClaimsRefused, "may claim it: "+refused
			steps = append(steps, step)
		}
	}
	return unknownTexts("addresses", unconfirmed, refusing), steps
}

// claim is a step about one claim, without its effect.
func (v *Facts) claim(e *ipcache.Entry) api.Step {
	cluster := e.Cluster().Name
	step := api.Step{Cluster: cluster}
	if node := e.NodeName(); node != "" {
		step.Keys = v.keys(cluster, wire.Nodes, node)
		step.AsOf, _ = v.asOf(cluster, wire.Nodes)
		return step
	}
	name := e.Prefix().String()
	if e.Prefix().IsSingleIP() && e.Kind() == ipcache.KindHost {
		name = e.Prefix().Addr().String()
	}
	step.Keys = v.keys(cluster, wire.IPs, name)
	step.AsOf, _ = v.asOf(cluster, wire.IPs)
	return step
}

// claimStep says why the claim at a place of the chain won or lost; first is the
// best one to its prefix.
func claimStep(chain []*ipcache.Entry, first *ipcache.Entry, i int) (codes.Code, string) {
	e, winner := chain[i], chain[0]
	switch {
	case i > 0 && e.Prefix() == winner.Prefix():
		return codes.ClaimLost, "lost: " + e.Weakness(first)
	case i > 0 && e == first:
		return codes.ClaimShorter, fmt.Sprintf("lost: a shorter prefix than %s", winner.Prefix())
	case i > 0:
		return codes.ClaimShorter, fmt.Sprintf("lost: a shorter prefix than %s, and there: %s", winner.Prefix(), e.Weakness(first))
	case len(chain) == 1:
		return codes.ClaimWon, "the winner: the only claim"
	case chain[1].Prefix() == e.Prefix():
		return codes.ClaimWon, "the winner: the strongest claim to the longest prefix"
	default:
		return codes.ClaimWon, "the winner: the longest prefix"
	}
}

func addressVerdict(addr netip.Addr, chain []*ipcache.Entry, unknown string) api.Verdict {
	switch {
	case len(chain) == 0 && unknown != "":
		return verdictf(codes.AddressUnknown, "no cluster is known to claim %s, and %s", addr, unknown)
	case len(chain) == 0:
		return verdictf(codes.AddressUnclaimed, "no cluster claims %s", addr)
	}
	winner := chain[0]
	rivals := []string{winner.Cluster().Name}
	for _, e := range chain[1:] {
		if e.Prefix() == winner.Prefix() && *e.Cluster() != *winner.Cluster() {
			rivals = append(rivals, e.Cluster().Name)
		}
	}
	switch {
	case len(rivals) > 1:
		return verdictf(codes.AddressContested, "%s is claimed by %s; %s counts", winner.Prefix(), list(rivals), winner.Cluster().Name)
	case !winner.Prefix().IsSingleIP() && unknown != "":
		return verdictf(codes.AddressUnknown, "no cluster is known to claim %s itself, which is in %s of %s; but %s", addr, winner.Prefix(), winner.Cluster().Name, unknown)
	case !winner.Prefix().IsSingleIP():
		return verdictf(codes.AddressInNetwork, "no cluster claims %s itself; it is in %s of %s", addr, winner.Prefix(), winner.Cluster().Name)
	}
	return verdictf(codes.AddressOwned, "%s is that of %s", addr, winner.Cluster().Name)
}

func (v *Facts) barred(strays []ipcache.Stray) []api.Step {
	var steps []api.Step
	for _, s := range strays {
		if s.Barred {
			step := v.claim(s.Entry)
			step.Code, step.Text = s.Breach.Rule.Info().Claim, "does not count: "+s.Breach.String()
			steps = append(steps, step)
		}
	}
	return steps
}

// unreported are the steps about claims of which there are too many for a step each.
func unreported(all []ipcache.Unreported) []api.Step {
	var steps []api.Step
	for _, u := range all {
		text := fmt.Sprintf("%d more claims on %s lost", u.Claims, u.Prefix)
		if u.Barred {
			text = fmt.Sprintf("more claims on %s do not count", u.Prefix)
		}
		steps = append(steps, api.Step{Code: codes.ClaimsUntold, Keys: []api.Key{}, Text: text + ": the list has the strongest of each cluster and kind"})
	}
	return steps
}

// refusals are the steps about keys for the address itself whose values are refused.
func (v *Facts) refusals(addr netip.Addr) []api.Step {
	var steps []api.Step
	for _, cluster := range v.names() {
		keys := v.keys(cluster, wire.IPs, addr.String(), netip.PrefixFrom(addr, addr.BitLen()).String())
		if why := refusal(keys); why != "" {
			at, _ := v.asOf(cluster, wire.IPs)
			steps = append(steps, api.Step{Code: codes.ClaimRefused, Cluster: cluster, Keys: keys, AsOf: at, Text: "its entry is refused: " + why})
		}
	}
	return steps
}
