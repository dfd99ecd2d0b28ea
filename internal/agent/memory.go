package agent

import (
	"errors"
	"log/slog"
	"math"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// memoryShare is the share of its cgroup's memory that Go may use. The rest is for memory that Go does not count, and
// for the time of a garbage collection.
const memoryShare = 0.9

// LimitMemory sets GOMEMLIMIT from the memory limit of the cgroup, unless it is set in the environment. Near the
// limit, Go collects garbage more often, so that the kernel does not end the process.
func LimitMemory(log *slog.Logger) {
	limit, err := memlimit.Set(memlimit.WithRatio(memoryShare), memlimit.WithProvider(memlimit.FromCgroup))
	switch {
	case errors.Is(err, memlimit.ErrNoCgroup):
		log.Debug("There is no memory limit", "reason", err)
	case err != nil:
		log.Warn("Cannot read the memory limit of the cgroup; set GOMEMLIMIT by hand", "error", err)
	case limit < math.MaxInt64:
		log.Info("Set the memory limit of Go", "bytes", limit)
	}
}
