package view

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestMetrics(t *testing.T) {
	t.Parallel()
	f := bounded(t)
	ended := false
	defer f.Keep(func() { ended = true })()
	f.feed.mu.Lock()
	for range 4 { // each takes more than half of the room
		f.feed.put(feedEntry{object: "now", before: "then", cost: testOld/2 + 1})
		f.feed.old.current = testKept + 1
		f.feed.kept.limit(&f.feed.old)
	}
	f.feed.mu.Unlock()
	if !ended {
		t.Error("the reader was not ended")
	}
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(NewCollector(f.View))
	if err := testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP mesh_agent_changes_dropped_total Changes that are not kept any more because the old versions of objects took too much memory.
# TYPE mesh_agent_changes_dropped_total counter
mesh_agent_changes_dropped_total 3
# HELP mesh_agent_changes_old_bytes Memory of the old versions of objects that the latest changes keep, in bytes, about.
# TYPE mesh_agent_changes_old_bytes gauge
mesh_agent_changes_old_bytes 2.097153e+06
# HELP mesh_agent_slow_readers_ended_total Watches and answers that were ended because slow readers kept too many old versions of objects.
# TYPE mesh_agent_slow_readers_ended_total counter
mesh_agent_slow_readers_ended_total 1
`)); err != nil {
		t.Error(err)
	}
}
