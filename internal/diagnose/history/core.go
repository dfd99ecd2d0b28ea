package history

import (
	"math"
	"slices"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// The bounds of the history.
const (
	Interval    = 10 * time.Second // between two samples
	Samples     = 360              // of each cluster: an hour
	MaxClusters = 511              // of which samples are kept, the first of the names
)

// sample has the observations of one moment. NaN, and none, mean that a value was not observed.
type sample struct {
	changes, lag, age  float32 // a second; seconds
	entries            int32
	clusters, observed uint16 // of all together: how many there were, and of how many the changes are
	state              uint8  // its place in states, plus one
}

const none = -1

func unseen() sample {
	nan := float32(math.NaN())
	return sample{changes: nan, lag: nan, age: nan, entries: none}
}

// series is the samples of one cluster, at the places of its core's moments.
type series struct {
	samples [Samples]sample
	first   uint64 // the number of its first sample
	before  counters
}

// counters has the numbers of events that have become visible since the start of the count.
type counters struct {
	of        map[wire.Resource]uint64
	connected bool
}

// core is the pure part: it takes observations, and has no clock of its own.
type core struct {
	moments  [Samples]time.Time // a ring, by number
	first, n uint64             // the number of the oldest moment, and of the next one
	all      series             // of all clusters together
	clusters map[string]*series
}

// take adds the present statuses of the clusters. The time has a reading of the monotonic clock if there is one.
func (c *core) take(now time.Time, said []remotecluster.Status) {
	elapsed := c.begin(now)
	at := c.n % Samples
	together := sample{changes: unseen().changes, lag: unseen().lag, age: unseen().age, entries: none, clusters: uint16(min(len(said), math.MaxUint16))} //nolint:gosec // not negative
	known := make(map[string]*series, len(said))
	for i := range said {
		s := c.clusters[said[i].Name]
		if s == nil {
			s = &series{first: c.n}
		}
		one := s.look(now, elapsed, &said[i])
		together.add(one)
		if len(known) < MaxClusters {
			s.samples[at], known[said[i].Name] = one, s
		}
	}
	c.clusters, c.all.samples[at], c.moments[at] = known, together, now.Round(0)
	c.n++
	c.first = max(c.first, c.n-min(c.n, Samples))
}

// begin makes room for a sample, and returns the time in which the changes since the last one were counted; 0 when
// that is not known. After the clock was set back, it deletes the samples of the future.
func (c *core) begin(now time.Time) time.Duration {
	if c.n == c.first {
		return 0
	}
	last, wall := c.moments[(c.n-1)%Samples], now.Round(0)
	elapsed := wall.Sub(last)
	for c.n > c.first && !c.moments[(c.n-1)%Samples].Before(wall) {
		c.n--
	}
	for _, s := range c.clusters {
		s.first = min(s.first, c.n)
	}
	if elapsed < Interval/2 || elapsed > 2*Interval {
		return 0
	}
	return elapsed
}

// look is the sample of a cluster.
func (s *series) look(now time.Time, elapsed time.Duration, said *remotecluster.Status) sample {
	one, seen := unseen(), counters{of: make(map[wire.Resource]uint64, len(said.Families)), connected: said.Connected}
	one.state = uint8(slices.Index(states(), said.State) + 1) //nolint:gosec // few
	var entries, changes uint64
	counted := said.Connected && s.before.connected && elapsed > 0
	lag := time.Duration(none)
	for r, src := range said.Families {
		if src.Synced || src.Count > 0 {
			one.entries = 0
			entries += uint64(max(0, src.Count)) //nolint:gosec // not negative
		}
		events, before := src.Lag.Events, s.before.of[r]
		if seen.of[r] = events; events < before {
			counted = false // it is counted from the beginning
		} else if changes += events - before; events > before {
			lag = max(lag, src.Lag.P99)
		}
	}
	if one.entries != none {
		one.entries = int32(min(entries, math.MaxInt32)) //nolint:gosec // bounded
	}
	if counted {
		one.changes = float32(float64(changes) / elapsed.Seconds())
		if lag >= 0 {
			one.lag = float32(lag.Seconds())
		}
	}
	if f, exported := said.FreshnessOf(required()...); exported && !f.AsOf.IsZero() {
		one.age = float32(max(0, now.Sub(f.AsOf)).Seconds())
	}
	s.before = seen
	return one
}

// add adds a cluster to a sample of several: the sum of changes and entries, and the worst of the ages and lags.
func (s *sample) add(one sample) {
	if !isNaN(one.changes) {
		s.changes = sumOf(s.changes, one.changes)
		s.observed++
	}
	s.lag, s.age = worse(s.lag, one.lag), worse(s.age, one.age)
	if one.entries != none {
		s.entries = int32(min(int64(max(0, s.entries))+int64(one.entries), math.MaxInt32)) //nolint:gosec // bounded
	}
}

func sumOf(a, b float32) float32 {
	if isNaN(a) {
		return b
	}
	return a + b
}

func worse(a, b float32) float32 {
	if isNaN(a) || b > a {
		return b
	}
	return a
}

func isNaN(f float32) bool { return math.IsNaN(float64(f)) }

// states are those of a cluster that a sample can name.
func states() []remotecluster.State {
	return []remotecluster.State{remotecluster.Connecting, remotecluster.Syncing, remotecluster.Ready, remotecluster.Degraded, remotecluster.Failed, remotecluster.Removing}
}

// required are the resources whose age is that of a cluster.
func required() []wire.Resource {
	return slices.DeleteFunc(wire.Resources(), func(r wire.Resource) bool { return !r.Describe().Required() })
}
