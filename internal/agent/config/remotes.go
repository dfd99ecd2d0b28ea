package config

import (
	"fmt"
	"math"
	"runtime/debug"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/disconnect"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// RemoteBudget is the flag whose options are what remote clusters may cost.
const RemoteBudget = "remote-budget"

// budgetHelp names the options with some of their defaults.
func budgetHelp() string {
	d := budget.Default()
	return fmt.Sprintf("what a remote cluster may cost: keys and bytes of a resource (ips.keys=%d, nodes.bytes=%dMi), bytes of a value (value=%dKi), "+
		"events a second (events=%d), how long a list may take (list=%s); 0 is no bound; CLUSTER.ips.keys and so on for one cluster; "+
		"repeated, or one JSON map (docs/budgets.md)",
		d.Share(wire.IPs).Keys, d.Share(wire.Nodes).Bytes>>20, d.Value>>10, d.Events, shortSpan(d.List.Round(time.Second)))
}

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

// remoteMemoryShare is how much of the memory that Go may use entries of remote
// clusters may take. The rest is for reading them, for answers, and for what the
// collector leaves for a while.
const remoteMemoryShare = 0.7

func (c Config) checkRemoteMemory() error {
	if c.RemoteMemory == "" {
		return nil
	}
	_, err := budget.ParseSize(c.RemoteMemory)
	return err
}

// RemoteMemoryLimit is the bound in bytes; 0 is none. The setting is validated.
func (c Config) RemoteMemoryLimit() int64 {
	if c.RemoteMemory != "" {
		n, _ := budget.ParseSize(c.RemoteMemory)
		return n
	}
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		return 0
	}
	return int64(float64(limit) * remoteMemoryShare)
}
