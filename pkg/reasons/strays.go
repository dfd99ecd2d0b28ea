package reasons

import (
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
			step.Code, step.Text = strayCode(s.Breach.Rule), "does not count: "+s.Breach.String()
			steps = append(steps, step)
		}
	}
	return steps
}

func strayCode(r ipcache.Rule) codes.Code {
	switch r {
	case ipcache.RuleOwnNetwork:
		return codes.ClaimInOwnNetwork
	case ipcache.RuleSpecialUse:
		return codes.ClaimSpecialUse
	case ipcache.RuleForeignNetwork:
		return codes.ClaimInForeignNetwork
	default:
		return codes.ClaimReservedIdentity
	}
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
