package history

import (
	"fmt"
	"testing"
	"time"
	"unsafe"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

var begun = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// at is n intervals after the begin.
func at(n int) time.Time { return begun.Add(time.Duration(n) * Interval) }

// cluster is the status of a connected cluster, with so many entries and events of its addresses.
func cluster(name string, entries int, events uint64) remotecluster.Status {
	all := map[wire.Resource]remotecluster.FamilyStatus{}
	for _, r := range wire.Resources() {
		all[r] = remotecluster.FamilyStatus{Exported: true, Synced: true, Freshness: remotecluster.Freshness{State: remotecluster.FreshnessSynced, AsOf: begun}}
	}
	ips := all[wire.IPs]
	ips.Count, ips.Lag = entries, store.Lag{Events: events, P99: 2 * time.Millisecond}
	all[wire.IPs] = ips
	return remotecluster.Status{Name: name, State: remotecluster.Ready, Connected: true, Families: all}
}

func changed(c remotecluster.Status, change func(*remotecluster.Status)) remotecluster.Status {
	change(&c)
	return c
}

// text shows what a point has; a value that was not observed is "-".
func text(p api.Point) string {
	show := func(f *float32) string {
		if f == nil {
			return "-"
		}
		return fmt.Sprintf("%g", *f)
	}
	entries := "-"
	if p.Entries != nil {
		entries = fmt.Sprint(*p.Entries)
	}
	return fmt.Sprintf("%s %s changes %s lag %s age %s entries %s", p.Time.Sub(begun), p.State, show(p.Changes), show(p.Lag), show(p.Age), entries)
}

// TestWhatWasNotObservedIsAbsent: each case is two samples; the second one is shown.
func TestWhatWasNotObservedIsAbsent(t *testing.T) {
	t.Parallel()
	lost := func(c *remotecluster.Status) { c.Connected, c.State = false, remotecluster.Degraded }
	for name, test := range map[string]struct {
		before, after remotecluster.Status
		then          time.Time
		want          string
	}{
		"changes":                          {cluster("a", 5, 10), cluster("a", 7, 30), at(1), "10s ready changes 2 lag 0.002 age 10 entries 7"},
		"nothing changed":                  {cluster("a", 5, 10), cluster("a", 5, 10), at(1), "10s ready changes 0 lag - age 10 entries 5"},
		"it was not connected":             {changed(cluster("a", 5, 10), lost), cluster("a", 7, 30), at(1), "10s ready changes - lag - age 10 entries 7"},
		"it is not connected":              {cluster("a", 5, 10), changed(cluster("a", 5, 10), lost), at(1), "10s degraded changes - lag - age 10 entries 5"},
		"it is counted from the beginning": {cluster("a", 5, 10), cluster("a", 7, 3), at(1), "10s ready changes - lag - age 10 entries 7"},
		"the machine slept":                {cluster("a", 5, 10), cluster("a", 7, 30), at(100), "16m40s ready changes - lag - age 1000 entries 7"},
		"a sample too late":                {cluster("a", 5, 10), cluster("a", 7, 30), begun.Add(16 * time.Second), "16s ready changes 1.25 lag 0.002 age 16 entries 7"},
		"the clock was set back":           {cluster("a", 5, 10), cluster("a", 7, 30), at(-100), "-16m40s ready changes - lag - age 0 entries 7"},
		"nothing was ever read":            {remotecluster.Status{Name: "a"}, remotecluster.Status{Name: "a", State: remotecluster.Connecting}, at(1), "10s connecting changes - lag - age - entries -"},
		"a state of another agent":         {remotecluster.Status{Name: "a"}, remotecluster.Status{Name: "a", State: "new"}, at(1), "10s  changes - lag - age - entries -"},
	} {
		var c core
		c.take(at(0), []remotecluster.Status{test.before})
		c.take(test.then, []remotecluster.Status{test.after})
		points := c.series("a", c.clusters["a"], test.then).Points
		if got := text(points[len(points)-1]); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, test.want)
		}
	}
}

// TestClockSetBack: samples have one order even if the clock is set, and the samples of a time that is still to come
// are gone.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	var c core
	for _, n := range []int{0, 1, 2, 3, 4, 2, 3, 50, 51} {
		c.take(at(n), []remotecluster.Status{cluster("a", n, uint64(n))})
	}
	got := ""
	for _, p := range c.series("a", c.clusters["a"], at(51)).Points {
		got += fmt.Sprint(int(p.Time.Sub(begun)/Interval), ":", *p.Entries, " ")
	}
	if want := "0:0 1:1 2:2 3:3 50:50 51:51 "; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestAnHour: samples older than an hour are not shown, also when no sample came since; a cluster that began later
// has only its own samples.
func TestAnHour(t *testing.T) {
	t.Parallel()
	var c core
	for n := range 3 * Samples / 2 {
		said := []remotecluster.Status{cluster("a", n, 0)}
		if n >= Samples {
			said = append(said, cluster("b", n, 0))
		}
		c.take(at(n), said)
	}
	last := at(3*Samples/2 - 1)
	a, b := c.series("a", c.clusters["a"], last).Points, c.series("b", c.clusters["b"], last).Points
	if len(a) != Samples || *a[0].Entries != Samples/2 || len(b) != Samples/2 || *b[0].Entries != Samples {
		t.Errorf("%d from %d, %d from %d", len(a), *a[0].Entries, len(b), *b[0].Entries)
	}
	if got := len(c.series("a", c.clusters["a"], last.Add(30*time.Minute)).Points); got != Samples/2+1 {
		t.Errorf("half an hour later %d are shown", got)
	}
	c.take(last.Add(Interval), []remotecluster.Status{cluster("b", 1, 0)})
	if _, there := c.clusters["a"]; there {
		t.Error("a cluster that is gone is remembered")
	}
}

// TestTogether: sums include observed values only, with the number of clusters that were observed.
func TestTogether(t *testing.T) {
	t.Parallel()
	var c core
	lost := func(s *remotecluster.Status) { s.Connected = false }
	for n := range 2 {
		events := uint64(n) * 100 //nolint:gosec // few
		c.take(at(n), []remotecluster.Status{cluster("a", 5, events), cluster("b", 6, 2*events), changed(cluster("c", 7, 0), lost), {Name: "d"}})
	}
	p := c.series("", &c.all, at(1)).Points[1]
	if got, want := text(p), "10s  changes 30 lag 0.002 age 10 entries 18"; got != want || p.Clusters != 4 || p.Observed != 2 {
		t.Errorf("%s, of %d of %d", got, p.Observed, p.Clusters)
	}
}

// TestBounds: neither many clusters nor much that happens to them takes more.
func TestBounds(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	if got := 254 * unsafe.Sizeof(series{}); got > 3*mib {
		t.Errorf("254 clusters take %d bytes", got)
	}
	var c core
	var said []remotecluster.Status
	for i := range MaxClusters + 100 {
		said = append(said, cluster(fmt.Sprint("c", i), 1, 0))
	}
	c.take(at(0), said)
	if p := c.series("", &c.all, at(0)).Points[0]; len(c.clusters) != MaxClusters || int(p.Clusters) != len(said) || int(*p.Entries) != len(said) {
		t.Errorf("%d are remembered; %d, with %d entries, are counted", len(c.clusters), p.Clusters, *p.Entries)
	}
}
