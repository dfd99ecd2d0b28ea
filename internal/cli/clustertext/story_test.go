package clustertext

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/simtest/samples"
)

// TestStory: the cause comes first, and its chain of errors with the details.
func TestStory(t *testing.T) {
	t.Parallel()
	c := assessed(samples.Caused())[1]
	if got, want := Story(&c, samples.Now, false), "MESH-1206 nothing listens at an endpoint: https://lagos.mesh:2379; its data is kept, as of 10m ago (23 failures, the last 5.0s ago)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := Story(&c, samples.Now, true), `MESH-1206 not connected for 10m; its data is kept: kvstore connect "https://lagos.mesh:2379": dial tcp 10.0.0.1:2379: connect: connection refused; trying again in 10s (23 failures, the last 5.0s ago)`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestRelative(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 1, 2, 3, 0, time.UTC)
	for message, want := range map[string]string{
		"":                                      "",
		"no time":                               "no time",
		"silent since 2026-11-21T01:00:03Z; so": "silent for 2m; so",
		"ended at 2026-11-21T01:01:53Z: EOF":    "ended 10s ago: EOF",
		"again at 2026-11-21T01:02:13Z":         "again in 10s",
		"before 2026-11-21T01:02:13Z they are":  "in 10s they are",
		"demoted since 2026-11-21T00:54:03Z (8m ago): why": "demoted for 8m: why",
		"since the start":               "since the start",
		"2026-13-45T99:99:99Z is none":  "2026-13-45T99:99:99Z is none",
		"a name 2026-11-21T01:02:13Zxx": "a name 2026-11-21T01:02:13Zxx",
	} {
		if got := Relative(message, now); got != want {
			t.Errorf("%q: %q, want %q", message, got, want)
		}
	}
}

// TestRemediesCanBePasted: they name the clusters, that of the cause comes first, and no remedy contains the name of a
// hostile cluster.
func TestRemediesCanBePasted(t *testing.T) {
	t.Parallel()
	all := Remedies(assessed(samples.Caused())...)
	if len(all) != 2 || !strings.HasPrefix(all[0], "Check that etcd") || !strings.Contains(all[1], "'mesh-agent troubleshoot lagos tunis'") {
		t.Errorf("%q", all)
	}
	evil := assessed(samples.Caused())[1]
	evil.Name = "x'; reboot; '"
	if text := strings.Join(Remedies(evil), " "); strings.Contains(text, "reboot") || !strings.Contains(text, "troubleshoot CLUSTER") {
		t.Errorf("%q", text)
	}
	newer := api.Cluster{Name: "kyoto", Code: "MESH-1999", Remedy: "Do this.", Trouble: &api.Trouble{Kind: "new", Remedy: "Do that."}}
	if got := Remedies(newer); !slices.Equal(got, []string{"Do this."}) {
		t.Errorf("of a newer agent: %q", got)
	}
}

func assessed(all []api.Cluster) []api.Cluster {
	for i := range all {
		all[i].Assess()
	}
	return all
}
