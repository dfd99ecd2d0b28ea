package config

import (
	"fmt"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/budget"
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
