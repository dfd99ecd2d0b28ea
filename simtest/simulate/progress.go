package simulate

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
)

// stuck is the CPU time without a step after which a run cannot end: a goroutine that never waits stops the simulated
// clock. A step takes milliseconds, and much less than this with the race detector, too.
const stuck = 100 * time.Second

// progress counts the steps of a run.
type progress struct{ steps atomic.Int64 }

// watch ends the process when a run is stuck. It is outside of the bubble, so its clock is the real one.
func (p *progress) watch(ctx context.Context, run string) {
	last, since := p.steps.Load(), cpuTime()
	if since == 0 {
		return // it is not known here
	}
	for waiting.Sleep(ctx, time.Second) == nil {
		if steps := p.steps.Load(); steps != last {
			last, since = steps, cpuTime()
		} else if cpuTime()-since > stuck {
			debug.SetTraceback("all")
			panic(fmt.Sprintf("%s: nothing happens for %s of CPU time", run, stuck))
		}
	}
}
