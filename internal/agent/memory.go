package agent

import (
	"errors"
	"log/slog"
	"math"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// memoryShare is how much of the memory of its cgroup the program lets Go use: the
// rest is for what Go does not count, and for the moment in which it collects.
const memoryShare = 0.9

// LimitMemory sets GOMEMLIMIT from the memory limit of the cgroup, unless the environment has it:
// near the limit garbage is collected more often, instead of the kernel ending the process.
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
