package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/disconnect"
)

// DisconnectPolicy is the flag whose options are the delays of the policy.
const DisconnectPolicy = "disconnect-policy"

// policyHelp names the options with their defaults.
func policyHelp() string {
	d := disconnect.DefaultDelays()
	return fmt.Sprintf("after how long without confirmation a cluster's service backends are used only where no other cluster has any (demote=%s) "+
		"and not at all there (withdraw=%s); after how long without a heartbeat the first of these (silence=%s); how long all must be well "+
		"again before that ends (restore=%s); 0 is never; CLUSTER.demote and so on for one cluster; repeated, or one JSON map (docs/policy.md)",
		shortSpan(d.Demote), shortSpan(d.Withdraw), shortSpan(d.Silence), shortSpan(d.Restore))
}

// shortSpan writes whole minutes as a person does.
func shortSpan(d time.Duration) string {
	text := d.String()
	if d >= time.Minute {
		text = strings.TrimSuffix(text, "0s")
	}
	return text
}
