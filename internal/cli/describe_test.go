package cli_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/cli/resource"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/simtest/clitest"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest/fakemesh"
)

func TestDescribe(t *testing.T) {
	t.Parallel()
	a := clitest.NewAgent(t, clitest.Well("c2", 2), clitest.Lost("c3"))
	tests := []struct {
		args     string
		code     int
		out, err string // expected parts; empty for no output
	}{
		{"describe cluster c2", 0, "10.2.1.10/32 is claimed by c2 and c3", ""},
		{"describe cluster c3 -o json", 0, `"lastError": "connection refused"`, ""},
		{"describe clusters nope", 1, "", `there is no cluster "nope"`},
		{"describe node c2/n1", 0, "1 address", ""},
		{"describe node n1 -c c2 -o json", 0, `"endpoints": {`, ""},
		{"describe node n1", 1, "", "named CLUSTER/NAME"},
		{"describe service default/web", 0, "yes: shared by c2", ""},
		{"describe svc web -n default -o yaml", 0, "code: MESH-2000", ""},
		{"describe service default/web --from eu-1a", 0, "Connections from zone eu-1a", ""},
		{"describe service default/web --port nope", 0, "None: no backend that is ready or serving has a port nope.", ""},
		{"describe service default/web --from eu-1a -o json", 0, `"near": "anywhere"`, ""},
		{"describe node c2/n1 --from eu-1a", 2, "", "--from and --port are for services"},
		{"describe service default/nope", 1, "", "MESH-2100"},
		{"describe serviceexport c2/default/web", 0, "Clusters that export it (2)", ""},
		{"describe serviceexport web -c c2 -n default", 0, "ClientIP 10800s", ""},
		{"describe serviceexports default/web -c c4 -o json", 0, `"kind": "service-affinity"`, ""},
		{"describe serviceexport c2/default/nope", 1, "", "exports no service"},
		{"describe serviceexport web -n default", 1, "", "named CLUSTER/NAMESPACE/NAME"},
		{"describe serviceexport c2/default/web/x", 1, "", "named CLUSTER/NAMESPACE/NAME"},
		{"describe service default/web", 0, "the session affinity of its exports is", ""},
		{"describe identity 131072", 0, "Used by      1 address", ""},
		{"describe identity 131072 -o json", 0, `"prefix": "10.2.1.10/32"`, ""},
		{"describe ip 10.2.1.10", 0, "lost: cluster ID 2 precedes 3", ""},
		{"describe ip 10.2.1.10/32 -o json", 0, `"conflicts": [`, ""},
		{"describe ip 10.9.9.9", 1, "", "MESH-3004"},
		{"describe ip 10.9.9.9 -o json", 1, "MESH-3004", "no cluster claims 10.9.9.9/32"},
		{"describe conflict ip/10.2.1.10/32", 0, "Claims of 10.2.1.10", ""},
		{"describe conflict ip/10.2.1.10/32 -o json", 0, `"lookup": {`, ""},
		{"describe conflict nonsense", 1, "", "named KIND/SUBJECT"},
		{"describe event 1", 0, "mesh-agent describe conflicts ip/10.2.1.10/32", ""},
		{"describe event 1 -o yaml", 0, "clusters: c2,c3", ""},
		{"describe health remote-cluster.c3", 0, "degraded, stale ", ""},
		{"describe health clustermesh -o json", 0, `"cluster": null`, ""},
		{"describe gremlin x", 2, "", "unknown resource"},
		{"describe cluster", 2, "", "want RESOURCE NAME"},
		{"describe cluster c2 -o wide", 2, "", "must be one of text, json, yaml"},
		{"describe cluster c2 -c c2", 2, "", "give either the NAME"},
		{"get conflicts -c c3", 0, "ip    MESH-3101  10.2.1.10/32  c2,c3", ""},
		{"get conflicts", 0, "service-affinity  MESH-2152  default/web   c2,c4", ""},
		{"get serviceexports", 0, "web   c2       ClusterSetIP  ClientIP 10800s   http=80/TCP", ""},
		{"get serviceexports -n default -c c4 -o name", 0, "c4/default/web\n", ""},
		{"get conflicts -c c9", 0, "", "No conflicts found."},
		{"get conflict ip/10.2.1.10/32 -o name", 0, "ip/10.2.1.10/32\n", ""},
		{"get events -c c2 -o wide", 0, "MESH-3101", ""},
		{"get event 1 -o json", 0, `"kind": "conflict"`, ""},
	}
	for _, test := range tests {
		t.Run(test.args, func(t *testing.T) {
			t.Parallel()
			got := a.Ask(strings.Fields(test.args)...)
			if got.Code != test.code || !clitest.Has(got.Out, test.out) || !clitest.Has(got.Err, test.err) {
				t.Errorf("exit code %d, want %d\nstdout:\n%s\nstderr:\n%s", got.Code, test.code, got.Out, got.Err)
			}
		})
	}
}

// TestDescribeEventOffersWhatWorks: the suggested commands work, also for the own cluster, which is not in the list of
// clusters.
func TestDescribeEventOffersWhatWorks(t *testing.T) {
	t.Parallel()
	own := clitest.Lost("c1")
	a := clitest.Serve(t, fakemesh.Facts{Clusters: []remotecluster.Status{clitest.Lost("c3")}, Own: &own})
	offers := 0
	var events struct{ Items []api.Event }
	if err := json.Unmarshal([]byte(a.Ask("get", "events", "-o", "json").Out), &events); err != nil {
		t.Fatal(err)
	}
	about := make(map[string]bool)
	for _, e := range events.Items {
		about[resource.EventObject(e)] = true
		_, offered, found := strings.Cut(a.Ask("describe", "event", strconv.FormatUint(e.ID, 10)).Out, "→ 'mesh-agent ")
		offered, _, closed := strings.Cut(offered, "'")
		if !found || !closed {
			continue
		}
		offers++
		if r := a.Ask(strings.Fields(offered)...); r.Code != exit.OK {
			t.Errorf("%s: exit %d, %s", offered, r.Code, r.Err)
		}
	}
	if !about["health local-kvstore"] || !about["clusters c3"] || offers == 0 {
		t.Errorf("%d offers for %v", offers, about)
	}
}
