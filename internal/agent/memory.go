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
		log.Debug("The memory is not limited", "reason", err)
	case err != nil:
		log.Warn("The memory limit of the cgroup cannot be read; set GOMEMLIMIT by hand to keep within it", "error", err)
	case limit < math.MaxInt64:
		log.Info("The memory that Go may use is limited", "bytes", limit)
	}
}
