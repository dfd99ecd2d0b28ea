package etcd

import (
	"math"
	"time"
)

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
