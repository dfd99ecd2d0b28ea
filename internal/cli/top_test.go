package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
	"github.com/mesh-agent/mesh-agent/simtest/clitest"
)

func TestTop(t *testing.T) {
	t.Parallel()
	a := clitest.NewAgent(t, clitest.Well("c2", 2), clitest.Lost("c3"))
	for _, test := range []struct {
		args     string
		code     int
		out, err string
	}{
		{"top --once --interval 10ms", exit.OK, "CLUSTER  RESOURCE        FRESHNESS  ENTRIES  CHANGE  REFUSED  EVENTS/S", ""},
		{"top --once --interval 10ms", exit.OK, "degraded: 0.0 events a second, 63 entries of 2 clusters", ""}, // 7 of each resource
		{"top c3 --once --interval 10ms", exit.OK, "c3       nodes           stale", ""},
		{"top c4 --once --interval 10ms", exit.Unwell, "", `there is no cluster "c4"`},
		{"top --once --interval 0s", exit.Usage, "", "--interval must be above zero"},
		{"top --interval 1ms", exit.Usage, "", "--interval must be 100ms at the least"},
		{"top --sort colour", exit.Usage, "", "must be one of rate, entries, lag, age, cluster"},
		{"top c2 c3", exit.Usage, "", "at most one CLUSTER"},
	} {
		got := a.Ask(strings.Fields(test.args)...)
		if got.Code != test.code || !strings.Contains(got.Out, test.out) || !clitest.Has(got.Err, test.err) {
			t.Errorf("%s: exit %d\n%s%s\nwant exit %d, %q and %q", test.args, got.Code, got.Out, got.Err, test.code, test.out, test.err)
		}
	}
	got := a.Ask("top", "c2", "--once", "--interval", "10ms", "-o", "json")
	var s struct {
		Clusters, Entries int
		Rows              []struct {
			Cluster, Resource string
			EventsPerSecond   *float64
		}
	}
	agenttest.Must(t, json.Unmarshal([]byte(got.Out), &s))
	if s.Clusters != 1 || s.Entries != 28 || len(s.Rows) != 4 || s.Rows[0].Cluster != "c2" || s.Rows[0].EventsPerSecond == nil {
		t.Errorf("%+v", s)
	}
}
