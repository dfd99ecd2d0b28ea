package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// remoteBudget is the flag whose options are what remote clusters may cost.
const remoteBudget = "remote-budget"

// warnOfBudgets logs which clusters have a budget of their own and no client file:
// their names may be misspelled.
func warnOfBudgets(b budget.Budgets, directory string, log *slog.Logger) {
	for _, name := range slices.Sorted(maps.Keys(b.Clusters)) {
		if _, err := os.Stat(filepath.Join(directory, name)); errors.Is(err, fs.ErrNotExist) {
			log.Warn("--remote-budget names a cluster that has no client file; is its name right?", "cluster", name, "directory", directory)
		}
	}
}

// budgetHelp names the options with some of their defaults.
func budgetHelp() string {
	d := budget.Default()
	return fmt.Sprintf("what a remote cluster may cost: keys and bytes of a resource (ips.keys=%d, nodes.bytes=%dMi), bytes of a value (value=%dKi), "+
		"events a second (events=%d), how long a list may take (list=%s); 0 is no bound; CLUSTER.ips.keys and so on for one cluster; "+
		"repeated, or one JSON map (docs/budgets.md)",
		d.Share(wire.IPs).Keys, d.Share(wire.Nodes).Bytes>>20, d.Value>>10, d.Events, shortSpan(d.List.Round(time.Second)))
}
