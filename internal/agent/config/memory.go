package config

import (
	"math"
	"runtime/debug"

	"github.com/mesh-agent/mesh-agent/pkg/budget"
)

const (
	// remoteMemory is the flag that says what the entries of all remote clusters may
	// take together.
	remoteMemory     = "remote-memory"
	remoteMemoryHelp = "what the entries of all remote clusters may take in memory together, about, such as 600Mi; empty is 70 % of GOMEMLIMIT, which follows the memory limit of the container; 0 is no bound (docs/budgets.md)"
)

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
