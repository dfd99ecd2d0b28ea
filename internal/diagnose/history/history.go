package history

import (
	"context"
	"sync"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
)

// History remembers the statuses of the clusters.
type History struct {
	said func() []remotecluster.Status
	now  func() time.Time

	mu   sync.RWMutex
	core core
}

// New returns a history of the statuses that said returns. It is empty until Run.
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
func (h *History) All() api.Series {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.core.series("", &h.core.all, h.now())
}

// Of is the last hour of a cluster; false for one that is not known.
func (h *History) Of(cluster string) (api.Series, bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	s := h.core.clusters[cluster]
	if s == nil {
		return api.Series{}, false
	}
	return h.core.series(cluster, s, h.now()), true
}

// series are the samples that are not too old.
func (c *core) series(cluster string, of *series, now time.Time) api.Series {
	all := api.Series{Cluster: cluster, IntervalSeconds: Interval.Seconds(), Points: []api.Point{}}
	for n := max(c.first, of.first); n < c.n; n++ {
		if at := c.moments[n%Samples]; now.Round(0).Sub(at) <= Samples*Interval {
			all.Points = append(all.Points, of.samples[n%Samples].point(at))
		}
	}
	return all
}

func (s sample) point(at time.Time) api.Point {
	p := api.Point{Time: at.UTC(), Changes: seen(s.changes), Lag: seen(s.lag), Age: seen(s.age), Clusters: s.clusters, Observed: s.observed}
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
