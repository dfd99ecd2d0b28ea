package reasons

import (
	"fmt"
	"net/netip"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// barred are the steps about claims that do not count.
func (v *View) barred(strays []ipcache.Stray) []Step {
	var steps []Step
	for _, s := range strays {
		if s.Barred {
			step := v.claim(s.Entry)
			step.Code, step.Text = s.Breach.Rule.Info().Claim, "does not count: "+s.Breach.String()
			steps = append(steps, step)
		}
	}
	return steps
}

// untold are the steps about claims of which there are too many to tell each.
func untold(all []ipcache.Unreported) []Step {
	var steps []Step
	for _, u := range all {
		step := Step{Code: codes.ClaimsUntold, Keys: []Key{}}
		if u.Barred {
			step.Text = fmt.Sprintf("more claims on %s do not count: those told are the strongest of each cluster and kind", u.Prefix)
		} else {
			step.Text = fmt.Sprintf("%d more claims on %s lost: those told are the strongest of each cluster and kind", u.Claims, u.Prefix)
		}
		steps = append(steps, step)
	}
	return steps
}

// refusals are the steps about keys for the address itself whose values are
// refused.
func (v *View) refusals(addr netip.Addr) []Step {
	var steps []Step
	for _, cluster := range v.names() {
		keys := v.keys(cluster, wire.IPs, addr.String(), netip.PrefixFrom(addr, addr.BitLen()).String())
		if why := refusal(keys); why != "" {
			at, _ := v.asOf(cluster, wire.IPs)
			steps = append(steps, Step{Code: codes.ClaimRefused, Cluster: cluster, Keys: keys, AsOf: at, Text: "its entry is refused: " + why})
		}
	}
	return steps
}
