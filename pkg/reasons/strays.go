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

// unreported are the steps about claims of which there are too many for a step each.
func unreported(all []ipcache.Unreported) []Step {
	var steps []Step
	for _, u := range all {
		text := fmt.Sprintf("%d more claims on %s lost", u.Claims, u.Prefix)
		if u.Barred {
			text = fmt.Sprintf("more claims on %s do not count", u.Prefix)
		}
		steps = append(steps, Step{Code: codes.ClaimsUntold, Keys: []Key{}, Text: text + ": those told are the strongest of each cluster and kind"})
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
