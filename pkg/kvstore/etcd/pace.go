package etcd

import (
	"math"
	"math/rand/v2"
	"time"
)

// The shortest pauses between the beginnings of two connections of one session, when
// the first of them failed or ended soon. gRPC has no pause after a connection that was
// made: a server that ends each at once would be asked again a thousand times a second.
const (
	paceMin    = 100 * time.Millisecond
	paceFactor = 1.6 // as gRPC's own pauses grow, which begin with longer ones: after a failure these add nothing
)

// pace keeps the connections of one session apart. The zero value has made none.
type pace struct {
	last  time.Time // when the last connection was begun
	pause time.Duration
}

// due returns how long the next connection has to wait, with a longest pause. When the last one
// was begun longer ago than twice that, it counts as the first. A wait is up to half as long
// again, so that many do not come at the same moment.
func (p *pace) due(now time.Time, longest time.Duration) time.Duration {
	longest = max(longest, paceMin)
	since := now.Sub(p.last)
	switch {
	case p.last.IsZero() || since > 2*longest:
		p.pause = 0
		return 0
	case p.pause == 0:
		p.pause = paceMin
	default:
		p.pause = min(time.Duration(float64(p.pause)*paceFactor), longest)
	}
	return max(0, p.pause+rand.N(p.pause/2)-since)
}

// Stretch lengthens an interval, or a pause after a lost connection, for the
// present size of the own cluster: × ln(1+nodes)/2 where that is more than the
// interval. So it is twice as long with 54 nodes, and 4.3 times with 5,000: they do
// not all ask at the same time, and a cluster of a few is as quick as one node.
func (o Options) Stretch(d time.Duration) time.Duration { return max(d, o.scaled(d)/2) }

// probeInterval is the time between two probes, before it is spread: thousands of
// agents ask less often, each.
func (o Options) probeInterval() time.Duration { return o.Stretch(o.Timings.ProbeInterval) }

// reconnectSpread is the time over which the nodes of the own cluster spread their
// attempts to restore connections that all of them have lost at once. gRPC makes the
// first of them without a pause, and its pauses are fixed when a session begins.
func (o Options) reconnectSpread() time.Duration {
	return o.Stretch(o.Timings.BackoffMax) - o.Timings.BackoffMax
}

// scaled stretches an interval by the size of the own cluster as Cilium does (spec
// kvstore.md §2.6).
func (o Options) scaled(d time.Duration) time.Duration {
	n := 1
	if o.ClusterSize != nil {
		n = max(1, o.ClusterSize())
	}
	return time.Duration(float64(d) * math.Log1p(float64(n)))
}
