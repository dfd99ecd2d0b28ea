package history

import (
	"context"
	"sync"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
)

// Series is the last hour of a cluster, or of all clusters together.
type Series struct {
	Cluster         string  `json:"cluster" doc:"Empty for all clusters together."`
	IntervalSeconds float64 `json:"intervalSeconds" doc:"The time between two samples. When two samples are further apart, nothing is known about the time between them."`
	Points          []Point `json:"points" doc:"The samples, the oldest first. None is older than an hour or than the start of the agent."`
}

// Point is one sample. A value that was not observed is null.
type Point struct {
	Time     time.Time `json:"time"`
	State    string    `json:"state,omitempty" doc:"The state of the cluster; absent for all clusters together."`
	Changes  *float32  `json:"changesPerSecond" doc:"Changes of keys that became visible, since the sample before. null while the cluster is not connected, and when the time between the samples is in doubt."`
	Lag      *float32  `json:"lagSeconds" doc:"The 99th percentile of how long the latest changes took to become visible; null when there were none since the sample before. For all clusters: the worst."`
	Age      *float32  `json:"ageSeconds" doc:"The age of the data; null when it was never complete. For all clusters: the greatest."`
	Entries  *int32    `json:"entries" doc:"The accepted keys of the kvstore; null before the first list. For all clusters: the sum of those that are known."`
	Clusters uint16    `json:"clusters,omitempty" doc:"For all clusters together: how many there were."`
	Observed uint16    `json:"observed,omitempty" doc:"For all clusters together: of how many the changes are. If it is less than clusters, there may have been more changes."`
}

// History remembers what is said of the clusters.
type History struct {
	said func() []remotecluster.Status
	now  func() time.Time

	mu   sync.RWMutex
	core core
}

// New returns a history of what said says. It remembers nothing until Run.
func New(said func() []remotecluster.Status) *History { return &History{said: said, now: time.Now} }

// Run takes a sample now and at each [Interval], until ctx ends, and returns nil.
func (h *History) Run(ctx context.Context) error {
	due := time.NewTicker(Interval)
	defer due.Stop()
	for {
		h.look()
		select {
		case <-ctx.Done():
			return nil
		case <-due.C:
		}
	}
}

func (h *History) look() {
	said := h.said()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.core.take(h.now(), said)
}

// All is the last hour of all clusters together.
func (h *History) All() Series {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.core.series("", &h.core.all, h.now())
}

// Of is the last hour of a cluster; false for one that is not known.
func (h *History) Of(cluster string) (Series, bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	s := h.core.clusters[cluster]
	if s == nil {
		return Series{}, false
	}
	return h.core.series(cluster, s, h.now()), true
}

// series are the samples that are not too old.
func (c *core) series(cluster string, of *series, now time.Time) Series {
	all := Series{Cluster: cluster, IntervalSeconds: Interval.Seconds(), Points: []Point{}}
	for n := max(c.first, of.first); n < c.n; n++ {
		if at := c.moments[n%Samples]; now.Round(0).Sub(at) <= Samples*Interval {
			all.Points = append(all.Points, of.samples[n%Samples].point(at))
		}
	}
	return all
}

func (s sample) point(at time.Time) Point {
	p := Point{Time: at.UTC(), Changes: seen(s.changes), Lag: seen(s.lag), Age: seen(s.age), Clusters: s.clusters, Observed: s.observed}
	if s.state > 0 {
		p.State = string(states()[s.state-1])
	}
	if s.entries != none {
		p.Entries = &s.entries
	}
	return p
}

func seen(f float32) *float32 {
	if isNaN(f) {
		return nil
	}
	return &f
}
