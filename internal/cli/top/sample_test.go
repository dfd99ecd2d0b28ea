package top

import (
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// statusOf is the status of an agent with one cluster, of which only nodes are read.
func statusOf(started time.Time, entries int, events uint64) *api.Status {
	c := api.Cluster{Name: "c2"}
	c.Counts.Nodes = entries
	*c.Freshness.Of(wire.Nodes) = api.Freshness{State: "synced", Lag: &api.Lag{MedianSeconds: 0.001, P99Seconds: 0.5, MaxSeconds: 2, Batches: 1, Events: events}}
	return &api.Status{Agent: api.AgentInfo{Version: "v1", Node: "n", Started: started}, State: api.StateReady, Clusters: []api.Cluster{c}}
}

// TestRates: a rate covers the time between two samples, also when the counter of events was reset. The first sample,
// and the first of another process, have no rate.
func TestRates(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	l := look{options: options{order: printer.NewFormat(byRate)}}
	for i, test := range []struct {
		at, started int // seconds
		entries     int
		events      uint64
		change      int
		rate        float64 // -1 for none
	}{
		{0, 0, 10, 100, 0, -1},
		{2, 0, 13, 150, 3, 25},
		{4, 0, 12, 150, -1, 0},
		{5, 0, 12, 7, 0, 7},
		{5, 0, 12, 9, 0, -1}, // no time has passed
		{7, 6, 12, 500, 0, -1},
		{8, 6, 12, 501, 0, 1},
	} {
		s := l.compare(statusOf(start.Add(time.Duration(test.started)*time.Second), test.entries, test.events), start.Add(time.Duration(test.at)*time.Second))
		if len(s.Rows) != 1 {
			t.Fatalf("%d: %+v", i, s.Rows)
		}
		rate := -1.0
		if r := s.Rows[0]; r.EventsPerSecond != nil {
			rate = *r.EventsPerSecond
		}
		if rate != test.rate || s.Rows[0].Change != test.change || s.EventsPerSecond != max(rate, 0) || s.Entries != test.entries {
			t.Errorf("%d: %+v of %+v, rate %v, want %+v", i, s.Rows[0], s, rate, test)
		}
	}
}

// TestOrder: the largest value comes first, and equal rows keep their order.
func TestOrder(t *testing.T) {
	t.Parallel()
	v := func(f float64) *float64 { return &f }
	rows := func() []row {
		return []row{
			{Cluster: "a", Resource: "nodes", Entries: 1, EventsPerSecond: v(5), AgeSeconds: v(3)},
			{Cluster: "a", Resource: "ips", Entries: 9, LagP99Seconds: v(2)},
			{Cluster: "b", Resource: "nodes", Entries: 1, EventsPerSecond: v(7), AgeSeconds: v(4)},
		}
	}
	for order, want := range map[string]string{byRate: "b/nodes a/nodes a/ips ", byEntries: "a/ips a/nodes b/nodes ", byLag: "a/ips a/nodes b/nodes ", byAge: "b/nodes a/nodes a/ips ", byCluster: "a/nodes a/ips b/nodes "} {
		got := ""
		for _, r := range sorted(rows(), order) {
			got += r.Cluster + "/" + r.Resource + " "
		}
		if got != want {
			t.Errorf("%s: %q, want %q", order, got, want)
		}
	}
}

func TestSpan(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[float64]string{0: "0µs", 0.000042: "42µs", 0.0123: "12.3ms", 1.5: "1.5s", 90: "1m30s"} {
		if got := span(seconds); got != want {
			t.Errorf("%v: %q, want %q", seconds, got, want)
		}
	}
}
