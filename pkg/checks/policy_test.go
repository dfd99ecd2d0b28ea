package checks

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// checkPolicy: what a claim policy file would refuse of what is there.
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
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
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
	expect("an empty one", check(false, "", budget.Defaults()), "it says nothing")
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
	expect("one that fits", check(true, fits, budget.Defaults()), "gone: it is not known")
	expect("one that does not", check(true, "default: deny\nclusters: {paris: {networks: [10.3.0.0/16]}, tokyo: {id: 7}, gone: {}, lyon: {}}", budget.Defaults()),
		"lyon has an entry", "paris: the claim policy file would refuse 1 of the 3 ips of paris, such as cilium/state/ip/v1/default/10.4.0.1: 10.4.0.1/32 is in none of the networks",
		"tokyo: it says that it has the cluster ID 4, and the claim policy file gives it 7: nothing would be read of tokyo", "lima: the claim policy file has no entry for this cluster", "gone: it is not known")
	small := budget.Budget{Resources: map[wire.Resource]budget.Share{wire.IPs: {Keys: 2}}}
	expect("more than the budget", check(true, strings.ReplaceAll(fits, "deny", "allow"), budget.Budgets{Budget: small}), "paris: it is not known", "gone: it is not known")
}
