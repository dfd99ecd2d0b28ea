package top

import (
	"context"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/cli/status"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// sample is the output of one interval.
type sample struct {
	Agent           string  `json:"agent"` // its version
	Node            string  `json:"node"`
	State           string  `json:"state"`
	Clusters        int     `json:"clusters"`
	Entries         int     `json:"entries"`
	EventsPerSecond float64 `json:"eventsPerSecond"`
	Rows            []row   `json:"rows"`

	keys     string // the meaning of the keys, if there are keys
	filtered bool   // there are rows, and none passes the filter
}

// row is one resource of a cluster.
type row struct {
	Cluster  string `json:"cluster"`
	Resource string `json:"resource"`
	State    string `json:"state"` // of its data
	Entries  int    `json:"entries"`
	Change   int    `json:"change"` // of Entries, since the last sample
	Rejected int    `json:"rejected"`
	// EventsPerSecond is null in the first sample.
	EventsPerSecond *float64 `json:"eventsPerSecond"`
	AgeSeconds      *float64 `json:"ageSeconds"` // null when no data was ever confirmed
	// The lag is null before the first event.
	LagMedianSeconds *float64 `json:"lagMedianSeconds"`
	LagP99Seconds    *float64 `json:"lagP99Seconds"`
	LagMaxSeconds    *float64 `json:"lagMaxSeconds"`
}

// look stores the last answer of the agent. Only one goroutine may use it.
type look struct {
	options
	client *client.Client
	now    func() time.Time

	at    time.Time // of the last answer; zero for none
	agent time.Time // start time of the agent of the last answer
	last  map[place]seen

	sample *sample // the last one, with all rows
	again  bool    // show the last sample again, because a key was pressed
	keys   bool    // whether there are keys
	filter string  // text in the cluster or the resource of a row; incomplete while typing is true
	typing bool
}

// place is one resource of a cluster.
type place struct {
	cluster  string
	resource wire.Resource
}

// seen are the numbers of a place in the last answer.
type seen struct {
	entries int
	events  uint64
}

// next requests the status of the agent. After a key, it returns the last sample again.
func (l *look) next(ctx context.Context) (*sample, error) {
	if l.again && l.sample != nil {
		l.again = false
		return l.arranged(), nil
	}
	st, err := l.client.Status(ctx)
	if err != nil {
		return nil, err
	}
	if l.cluster != "" {
		one := status.ClusterNamed(st.Clusters, l.cluster)
		if one == nil {
			return nil, status.NoCluster(st.Clusters, l.cluster)
		}
		st.Clusters, st.OwnCluster = []api.Cluster{*one}, nil
	}
	return l.compare(st, l.now()), nil
}

// compare returns the sample of an answer, with the changes since the last answer of the same process.
func (l *look) compare(st *api.Status, now time.Time) *sample {
	clusters := st.Clusters
	if st.OwnCluster != nil {
		clusters = append(clusters, *st.OwnCluster)
	}
	s := &sample{Agent: "mesh-agent " + st.Agent.Version, Node: st.Agent.Node, State: st.State, Clusters: len(clusters), Rows: []row{}}
	elapsed := now.Sub(l.at).Seconds()
	if l.at.IsZero() || !l.agent.Equal(st.Agent.Started) || elapsed <= 0 {
		l.last, elapsed = nil, 0
	}
	next := make(map[place]seen)
	for i := range clusters {
		c := &clusters[i]
		for r, f := range c.Freshness.All() {
			if !c.Has(r) {
				continue
			}
			row := rowOf(c, r, f)
			is, at := seen{entries: row.Entries}, place{c.Name, r}
			if f.Lag != nil {
				is.events = f.Lag.Events
			}
			if was, known := l.last[at]; known {
				row.changedFrom(was, is, elapsed)
				s.EventsPerSecond += *row.EventsPerSecond
			}
			next[at] = is
			s.Entries += row.Entries
			s.Rows = append(s.Rows, row)
		}
	}
	l.at, l.agent, l.last = now, st.Agent.Started, next
	l.sample = s
	return l.arranged()
}

func rowOf(c *api.Cluster, r wire.Resource, f *api.Freshness) row {
	is := row{
		Cluster: c.Name, Resource: string(r), State: f.State, Entries: *c.Counts.Of(r), Rejected: *c.Rejected.Of(r), AgeSeconds: f.AgeSeconds,
	}
	if lag := f.Lag; lag != nil {
		is.LagMedianSeconds, is.LagP99Seconds, is.LagMaxSeconds = &lag.MedianSeconds, &lag.P99Seconds, &lag.MaxSeconds
	}
	return is
}

// changedFrom sets the changes. When the number of events is smaller than before, it started again at 0.
func (r *row) changedFrom(was, is seen, elapsed float64) {
	r.Change = is.entries - was.entries
	events := is.events
	if is.events >= was.events {
		events -= was.events
	}
	rate := float64(events) / elapsed
	r.EventsPerSecond = &rate
}
