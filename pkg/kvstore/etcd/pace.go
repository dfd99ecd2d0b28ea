package etcd

import (
	"math"
	"math/rand/v2"
	"time"
)

// The pause between the starts of two connections of one session, when the first of them
// failed or ended soon, is at first paceMin and then grows by paceFactor. gRPC has no pause after
// a successful connection: without pace, a server that ends each connection at once would get a
// thousand connections per second.
const (
	paceMin    = 100 * time.Millisecond
	paceFactor = 1.6 // like gRPC's own pauses, which begin longer: after a failure these pauses add nothing
)

// pace computes the pauses between the connections of one session. The zero value has no connection yet.
type pace struct {
	last  time.Time // the start of the last connection
	pause time.Duration
}

// due returns how long the next connection has to wait; longest is the longest pause. If the last
// connection started more than twice the longest pause ago, the next one counts as the first. Each
// pause is randomly up to 50% longer, so that many nodes do not connect at the same moment.
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
// current size of the own cluster: × ln(1+nodes)/2, but never below the interval
// itself. So it is twice as long with 54 nodes, and 4.3 times with 5,000: many nodes do
// not all ask at the same time, and a cluster of a few nodes is as quick as one node.
func (o Options) Stretch(d time.Duration) time.Duration { return max(d, o.scaled(d)/2) }

// probeInterval returns the time between two probes, without [Session.spread]: in a cluster of
// thousands of agents each one probes less often.
func (o Options) probeInterval() time.Duration { return o.Stretch(o.Timings.ProbeInterval) }

// reconnectSpread returns the time over which the nodes of the own cluster spread their
// attempts to restore connections that all of them have lost at once. gRPC makes the first
// attempt without a pause, and its pauses are fixed when a session begins.
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
