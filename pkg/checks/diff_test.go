package checks

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// checkDiff: what a directory would change in agents that know something else.
func checkDiff(t *testing.T, all *gathered) {
	w := newWorld(t)
	for _, name := range []string{"added", "same", "moved", "touched", "older", "renumbered", "returns"} {
		w.file(name, "endpoints: ['http://127.0.0.1:1'] # "+name)
	}
	w.file("unreadable", "endpoints: [x")
	w.file("notes.txt", "nothing")
	r := w.report(time.Now())
	hash := func(name string) string { return api.KeyedHash("key", r.of(t, name).contents) }
	r.of(t, "renumbered").ClusterID = 5 // as Connect has found
	counts := api.ByResource[int]{Nodes: 3, Services: 2, EndpointSlices: 1, ServiceExports: 5, Identities: 1, IPs: 40}
	url, other := []string{"http://127.0.0.1:1"}, []string{"https://x:1"}
	r.Compare(&api.Status{
		Agent: api.AgentInfo{Cluster: "own", MeshDirectory: "/mesh"},
		Clusters: []api.Cluster{
			{Name: "same", ConfigHash: hash("same"), Endpoints: url},
			{Name: "moved", ConfigHash: "1", Endpoints: other},
			{Name: "touched", ConfigHash: "1", Endpoints: url},
			{Name: "older", Endpoints: url},
			{Name: "renumbered", ConfigHash: hash("renumbered"), Endpoints: url, ID: 4, Counts: counts},
			{Name: "returns", State: "removing", ConfigHash: hash("returns"), Endpoints: url},
			{Name: "unreadable", ConfigHash: hash("unreadable")},
			{Name: "gone", ID: 9, Counts: counts},
			{Name: "away", State: "removing"},
			{Name: "idle"},
		},
	}, "key")
	all.add(r)
	want := &Diff{
		Agent: "own", Directory: "/mesh", Unchanged: 3,
		Changes: []Change{
			{Cluster: "added", Change: Add},
			{Cluster: "gone", Change: Remove, Vanish: &counts},
			{Cluster: "idle", Change: Remove, Vanish: new(api.ByResource[int])},
			{Cluster: "moved", Change: Modify, What: []string{"endpoints: http://127.0.0.1:1 instead of https://x:1"}},
			{Cluster: "renumbered", Change: Modify, What: []string{"cluster ID 5 instead of 4"}, Vanish: &counts},
			{Cluster: "returns", Change: Add},
			{Cluster: "touched", Change: Modify, What: []string{"contents of the client file, or of the authorities, certificate or key that it names"}},
		},
		Vanish: api.ByResource[int]{Nodes: 6, Services: 4, EndpointSlices: 2, ServiceExports: 10, Identities: 2, IPs: 80},
	}
	if d := cmp.Diff(want, r.Diff); d != "" {
		t.Error(d)
	}
	wantFindings(t, r.Findings, []found{
		{codes.WouldRemove, "gone has no client file in " + w.dir + " and would be removed, with 3 nodes, 2 services, 1 endpoint slice, 5 service exports, 1 identity, 40 addresses"},
		{codes.WouldRemove, "idle has no client file in " + w.dir + " and would be removed, with no entries"},
	})
	wantFindings(t, r.of(t, "renumbered").Findings, []found{
		{codes.WouldChangeID, "cluster ID 5 instead of 4: 3 nodes, 2 services"}, {codes.WouldChange, "cluster ID 5 instead of 4"},
	})
	wantFindings(t, r.of(t, "added").Findings, []found{{codes.WouldAdd, "does not have added"}})
	if r.Errors != 1 || r.Warnings != 3 {
		t.Errorf("%d errors, %d warnings", r.Errors, r.Warnings)
	}

	r = w.report(time.Now())
	r.Compare(&api.Status{Agent: api.AgentInfo{Cluster: "east"}}, "key")
	all.add(r)
	wantFindings(t, r.Findings, []found{{codes.AgentOfOtherNames, `of the cluster "east", and the check is for "own"`}})

	// Without the key contents are not compared, and that is said; endpoints are.
	r = w.report(time.Now())
	r.Compare(&api.Status{Agent: api.AgentInfo{Cluster: "own"}, Clusters: []api.Cluster{
		{Name: "same", ConfigHash: hash("same"), Endpoints: url}, {Name: "moved", ConfigHash: "1", Endpoints: other}, {Name: "touched", ConfigHash: "1", Endpoints: url},
	}}, "")
	all.add(r)
	wantFindings(t, r.Findings, []found{{codes.ContentsNotCompared, "not the contents of the client files"}})
	if r.Diff.Unchanged != 2 || !slices.ContainsFunc(r.Diff.Changes, func(c Change) bool { return c.Cluster == "moved" && c.Change == Modify }) {
		t.Errorf("%+v", r.Diff)
	}
}
