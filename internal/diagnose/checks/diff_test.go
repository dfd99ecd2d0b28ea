package checks

import (
	"bytes"
	"encoding/xml"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
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
	hash := func(name string) string { return clientfile.KeyedHash("key", r.of(t, name).contents) }
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

// TestJUnit reads the written report like another program, from the XML alone.
func TestJUnit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.file("faulty", "endpoints: []", "x: 1")
	w.file("warned", "endpoints: ['http://c2:1']", "username: a<b&c", "password: geheim")
	w.file("well", "endpoints: ['http://127.0.0.1:1']")
	w.file("README", "nothing")
	w.file("Bad", "endpoints: []")
	r := w.report(time.Now())
	r.Findings = append(r.Findings, codes.WouldRemove.Found("c9 would be removed\x01", ""))
	type results struct {
		XMLName xml.Name `xml:"testsuites"`
		Suite   []struct {
			Name  string `xml:"name,attr"`
			Tests int    `xml:"tests,attr"`
			Fails int    `xml:"failures,attr"`
			Skips int    `xml:"skipped,attr"`
			Cases []struct {
				Name    string `xml:"name,attr"`
				Skipped *struct {
					Message string `xml:"message,attr"`
				} `xml:"skipped"`
				Failure *struct {
					Type string `xml:"type,attr"`
					Text string `xml:",chardata"`
				} `xml:"failure"`
				Out string `xml:"system-out"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	for strict, want := range map[bool]map[string]string{
		false: {"the directory": "out", "Bad": "MESH-6001", "README": "skipped", "faulty": "MESH-6004", "warned": "out", "well": "passed"},
		true:  {"the directory": "MESH-6303", "Bad": "MESH-6001", "README": "skipped", "faulty": "MESH-6004", "warned": "MESH-6018", "well": "passed"},
	} {
		var out bytes.Buffer
		waittest.Must(t, r.JUnit(&out, strict))
		var read results
		if err := xml.Unmarshal(out.Bytes(), &read); err != nil || !strings.HasPrefix(out.String(), xml.Header) || len(read.Suite) != 1 {
			t.Fatalf("%v\n%s", err, out.String())
		}
		got := make(map[string]string)
		fails := 0
		for _, c := range read.Suite[0].Cases {
			switch {
			case c.Failure != nil:
				got[c.Name] = c.Failure.Type
				fails++
				if !strings.Contains(c.Failure.Text, "["+c.Failure.Type+"]") {
					t.Errorf("%+v", c)
				}
			case c.Skipped != nil:
				got[c.Name] = "skipped"
			case c.Out != "":
				got[c.Name] = "out"
			default:
				got[c.Name] = "passed"
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("strict %t: %s\n%s", strict, d, out.String())
		}
		if s := read.Suite[0]; s.Tests != len(want) || s.Fails != fails || s.Skips != 1 || !strings.Contains(s.Name, w.dir) {
			t.Errorf("%+v", s)
		}
		if !strings.Contains(out.String(), "a&lt;b&amp;c") || strings.Contains(out.String(), "geheim") {
			t.Error(out.String())
		}
	}
}

// checkPolicy checks the entries of the servers that a claim policy file would refuse.
func checkPolicy(t *testing.T, all *gathered) {
	w := newWorld(t)
	paris := server(t, map[string]string{"paris": `{"id":3,"capabilities":{}}`})
	for _, key := range []string{"10.3.0.1", "10.3.0.2", "10.4.0.1"} {
		paris.Put(t, "cilium/state/ip/v1/default/"+key, `{"IP":"`+key+`","Mask":null,"HostIP":"","ID":196609,"Key":0,"Metadata":"","K8sNamespace":"shop","K8sPodName":"x"}`)
	}
	w.file("paris", plainFile(paris))
	w.file("tokyo", plainFile(server(t, map[string]string{"tokyo": `{"id":4,"capabilities":{}}`})))
	w.file("lima", plainFile(server(t, map[string]string{"lima": `{"id":5,"capabilities":{}}`})))
	w.file("gone", "endpoints: ['http://127.0.0.1:1']")
	check := func(connected bool, text string, budgets budget.Budgets) (found []string) {
		file := filepath.Join(t.TempDir(), "claims.yaml")
		waittest.Must(t, os.WriteFile(file, []byte(text), 0o600))
		r := w.report(time.Now())
		if connected {
			r.Connect(t.Context(), patient())
		}
		r.Policy(t.Context(), file, patient(), budgets)
		all.add(r)
		for _, f := range r.Findings {
			found = append(found, ": "+f.String())
		}
		for _, file := range r.Files {
			for _, f := range file.Findings {
				found = append(found, file.Cluster+": "+f.String())
			}
		}
		return slices.DeleteFunc(found, func(s string) bool { return !strings.Contains(s, "[MESH-632") })
	}
	expect := func(what string, found []string, want ...string) {
		t.Helper()
		if len(found) != len(want) {
			t.Errorf("%s: %q, want %q", what, found, want)
			return
		}
		for _, text := range want {
			if !slices.ContainsFunc(found, func(s string) bool { return strings.Contains(s, text) }) {
				t.Errorf("%s: %q is not in %q", what, text, found)
			}
		}
	}
	const fits = "default: deny\nclusters: {paris: {id: 3, networks: [10.0.0.0/8]}, tokyo: {}, lima: {}, gone: {}}"
	expect("a file with mistakes", check(false, "default: no\nclusters: {}", budget.Defaults()), "want allow or deny [MESH-6320]")
	expect("one with two mistakes", check(false, "default: deny\nclusters:\n  paris: {id: three, networks: [10.0.0.1/8]}", budget.Defaults()),
		`line 3: clusters.paris.id: "three" is no cluster ID`, "line 3: clusters.paris.networks: ")
	expect("no YAML", check(false, "clusters: [\n  x\n  y: {", budget.Defaults()), "it is no YAML: line ")
	expect("an empty one", check(false, "", budget.Defaults()), "it is empty")
	named := w.report(time.Now())
	own := budget.Default()
	named.Budgets(budget.Budgets{Budget: own, Clusters: map[string]budget.Budget{"paris": own, "cluster9": own}})
	if len(named.Findings) != 1 || !strings.Contains(named.Findings[0].String(), "--remote-budget names cluster9, which has no client file") {
		t.Errorf("a budget of a cluster that is not there: %v", named.Findings)
	}
	missing := w.report(time.Now())
	missing.Policy(t.Context(), filepath.Join(t.TempDir(), "claims.yaml"), patient(), budget.Defaults())
	if len(missing.Findings) != 1 || !strings.Contains(missing.Findings[0].String(), "claims.yaml is missing: there is no such file [MESH-6320]") {
		t.Errorf("a missing file: %v", missing.Findings)
	}
	expect("one that fits, nobody is asked", check(false, fits, budget.Defaults()))
	expect("one that fits", check(true, fits, budget.Defaults()), "gone: cannot predict")
	expect("one that does not", check(true, "default: deny\nclusters: {paris: {networks: [10.3.0.0/16]}, tokyo: {id: 7}, gone: {}, lyon: {}}", budget.Defaults()),
		"lyon has an entry", "paris: the claim policy file would refuse 1 of the 3 ips of paris, such as cilium/state/ip/v1/default/10.4.0.1: 10.4.0.1/32 is in none of the networks",
		"tokyo: it says that it has the cluster ID 4, and the claim policy file gives it 7: nothing would be read of tokyo", "lima: the claim policy file has no entry for this cluster", "gone: cannot predict")
	small := budget.Budget{Resources: map[wire.Resource]budget.Share{wire.IPs: {Keys: 2}}}
	expect("more than the budget", check(true, strings.ReplaceAll(fits, "deny", "allow"), budget.Budgets{Budget: small}), "paris: cannot predict", "gone: cannot predict")
}
