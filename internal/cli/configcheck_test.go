package cli_test

import (
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/diagnose/checks"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
	"github.com/mesh-agent/mesh-agent/simtest/clitest"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest"
	"github.com/mesh-agent/mesh-agent/simtest/samples"
	"github.com/mesh-agent/mesh-agent/simtest/sim"
	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
)

func TestConfigCheck(t *testing.T) {
	t.Parallel()
	const plain = "endpoints: ['http://127.0.0.1:1']\n"
	clean := clitest.MeshDirectory(t, map[string]string{"c2": plain, "own": "endpoints: [broken"})
	warned := clitest.MeshDirectory(t, map[string]string{"c2": "endpoints: ['http://192.0.2.1:1']\n"})
	faulty := clitest.MeshDirectory(t, map[string]string{"c2": plain, "c3": "endpoints: []\n", "notes.txt": "x"})
	file := samples.SettingsFile(t, "cluster-name: own\nlisten: 127.0.0.1:1\nclustermesh-config: "+warned+"\n")
	for name, test := range map[string]struct {
		args     []string
		env      map[string]string
		code     int
		out, err string
	}{
		"clean":                     {[]string{clean, "--cluster-name=own"}, nil, 0, "1 cluster would be connected, 0 can not work, 1 entry ignored; 0 errors, 0 warnings", ""},
		"the own name from a file":  {[]string{clean, "--config", file}, nil, 0, "own cluster, which is no remote one", ""},
		"the own name from the env": {[]string{clean}, map[string]string{"MESH_AGENT_CLUSTER_NAME": "own"}, 0, "own cluster, which is no remote one", ""},
		"another own name":          {[]string{clean}, nil, 2, "yaml: line 1", ""},
		"strict and clean":          {[]string{clean, "--cluster-name=own", "--strict"}, nil, 0, "0 warnings", ""},
		"warnings":                  {[]string{warned}, nil, 0, "warning: endpoints: http://192.0.2.1:1 is not encrypted", ""},
		"strict":                    {[]string{warned, "--strict"}, nil, 1, "1 warning\n", ""},
		"the directory of the file": {[]string{"--config", file, "--strict"}, nil, 1, "192.0.2.1", ""},
		"the directory of a flag":   {[]string{"--config", file, "--clustermesh-config", faulty}, nil, 2, "at least one is needed", ""},
		"errors":                    {[]string{faulty}, nil, 2, "error:   endpoints: at least one is needed", ""},
		"what is ignored":           {[]string{faulty}, nil, 2, "notes.txt  no client file", ""},
		"no directory":              {[]string{"/nonexistent/mesh"}, nil, 2, "", "/nonexistent/mesh: no such file"},
		"a file":                    {[]string{file}, nil, 2, "", "not a directory"},
		"an ID without a name":      {[]string{clean, "--cluster-id=3"}, nil, 2, "", "--cluster-id: cannot use default cluster name"},
		"a bad settings file":       {[]string{clean, "--config=/nonexistent/x"}, nil, 2, "", "--config: open /nonexistent/x"},
		"two directories":           {[]string{clean, faulty}, nil, 2, "", "at most one DIR"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := clitest.With(test.env, "", "").Run(append([]string{"config", "check"}, test.args...)...)
			if got.Code != test.code || !clitest.Has(got.Out, test.out) || !clitest.Has(got.Err, test.err) {
				t.Errorf("exit code %d, want %d\n%s%s", got.Code, test.code, got.Out, got.Err)
			}
		})
	}
	for _, format := range []string{"json", "yaml"} {
		got := clitest.With(nil, "", "").Run("config", "check", faulty, "-o", format)
		if got.Code != exit.Usage || !strings.Contains(got.Out, "verdict") {
			t.Errorf("%s: %+v", format, got)
		}
	}
	var c checks.Report
	if err := json.Unmarshal([]byte(clitest.With(nil, "", "").Run("config", "check", faulty, "-o", "json").Out), &c); err != nil || c.Errors != 1 || len(c.Files) != 3 {
		t.Errorf("%v %+v", err, c)
	}
}

func TestConfigCheckAsksTheServers(t *testing.T) {
	t.Parallel()
	file := func(name string) string {
		return "endpoints: ['" + clitest.PlainCluster(t, name, "").Endpoint() + "']\n" // of ID 2
	}
	c2 := file("c2")
	one := clitest.MeshDirectory(t, map[string]string{"c2": c2})
	two := clitest.MeshDirectory(t, map[string]string{"c2": c2, "c3": file("c3")})
	gone := clitest.MeshDirectory(t, map[string]string{"c2": c2, "c4": "endpoints: ['http://127.0.0.1:1']\n"})
	for name, test := range map[string]struct {
		args []string
		code int
		out  []string
	}{
		"well":            {[]string{one, "--connect", "--strict"}, 0, []string{"1 cluster would be connected", "c2       connect  nobody  -                   2  http://"}},
		"one ID twice":    {[]string{two, "--connect"}, 2, []string{"2 clusters would be connected, 0 can not work", "cluster ID 2 is that of c2 and c3: the agent would read the first that connects [MESH-1101]"}},
		"our own ID":      {[]string{one, "--connect", "--cluster-name=own", "--cluster-id=2"}, 2, []string{`cluster-configuration: cluster ID 2 is already used by our own cluster "own" [MESH-1101]`, "→ IDs must be unique"}},
		"nobody listens":  {[]string{gone, "--connect"}, 2, []string{"error:   tcp of http://127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused [MESH-6203]", "→ nothing listens there"}},
		"nobody is asked": {[]string{gone}, 0, []string{"2 clusters would be connected"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := clitest.Checker(test.args...)
			if got.Code != test.code || got.Err != "" {
				t.Errorf("exit code %d, want %d\n%s%s", got.Code, test.code, got.Out, got.Err)
			}
			for _, part := range test.out {
				if !strings.Contains(got.Out, part) {
					t.Errorf("%q is not in\n%s", part, got.Out)
				}
			}
		})
	}
}

func TestConfigCheckAgainstAnAgent(t *testing.T) {
	t.Parallel()
	m, other := meshtest.Run(t, meshtest.Clusters(2)...), meshtest.Run(t, contents.Default("cluster1", 7))
	a, _ := agenttest.InProcess(t, map[string]string{"clustermesh-config": m.Dir(), "cluster-name": "own", "cluster-id": "250"})
	a.Until("both clusters", func() bool { return slices.Equal(a.ReadyClusters(), []string{"cluster1", "cluster2"}) })
	read := func(m *sim.Mesh, name string) string {
		text, err := os.ReadFile(filepath.Join(m.Dir(), name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	vanish := agenttest.List[api.Cluster](a, "clusters")[1].Counts
	check := func(args ...string) (clitest.Result, checks.Report) {
		t.Helper()
		got := clitest.CheckerNow(append(args, "--diff", "--socket", a.Socket, "-o", "json", "--cluster-name=own", "--cluster-id=250")...)
		var r checks.Report
		if err := json.Unmarshal([]byte(got.Out), &r); err != nil || r.Diff == nil {
			t.Fatalf("%v: %+v", err, got)
		}
		return got, r
	}
	wantChange := func(r checks.Report, cluster, change string, found ...codes.Code) {
		t.Helper()
		i := slices.IndexFunc(r.Diff.Changes, func(c checks.Change) bool { return c.Cluster == cluster })
		if i < 0 || r.Diff.Changes[i].Change != change {
			t.Errorf("%s is not to %s: %+v", cluster, change, r.Diff)
		}
		all := r.Findings
		for _, f := range r.Files {
			all = append(all, f.Findings...)
		}
		for _, code := range found {
			if !slices.ContainsFunc(all, func(f codes.Finding) bool { return f.Code == code }) {
				t.Errorf("%s is not in %+v", code, all)
			}
		}
	}

	got, r := check(m.Dir(), "--strict")
	if got.Code != exit.OK || len(r.Diff.Changes) != 0 || r.Diff.Unchanged != 2 || r.Diff.Agent != "own" || r.Diff.Directory != m.Dir() {
		t.Errorf("the same directory: %+v", got)
	}

	next := clitest.MeshDirectory(t, map[string]string{"cluster1": read(m, "cluster1"), "cluster9": "endpoints: ['http://127.0.0.1:1']\n"})
	got, r = check(next)
	wantChange(r, "cluster9", checks.Add, codes.WouldAdd)
	wantChange(r, "cluster2", checks.Remove, codes.WouldRemove)
	if got.Code != exit.OK || r.Diff.Unchanged != 1 || r.Diff.Vanish != vanish || vanish.IPs == 0 {
		t.Errorf("one added and one removed, of which %+v: %+v", vanish, got)
	}
	if got, _ := check(next, "--strict"); got.Code != exit.Unwell {
		t.Errorf("strict: exit code %d", got.Code)
	}

	moved := clitest.MeshDirectory(t, map[string]string{"cluster1": read(other, "cluster1"), "cluster2": read(m, "cluster2") + "# touched\n"})
	_, r = check(moved)
	wantChange(r, "cluster1", checks.Modify, codes.WouldChange)
	wantChange(r, "cluster2", checks.Modify, codes.WouldChange)
	if r.Diff.Vanish.IPs != 0 {
		t.Errorf("nothing is known to vanish: %+v", r.Diff)
	}
	got, r = check(moved, "--connect")
	wantChange(r, "cluster1", checks.Modify, codes.WouldChange, codes.WouldChangeID)
	if got.Code != exit.OK || r.Diff.Vanish.IPs == 0 {
		t.Errorf("cluster1 is another one there: %+v", got)
	}
	text := clitest.CheckerNow(moved, "--diff", "--connect", "--socket", a.Socket)
	for _, part := range []string{"~ cluster1  ", "cluster ID 7 instead of 1", "contents of the client file", `the running agent is of the cluster "own", and the check is for "default" [MESH-6305]`} {
		if text.Code != exit.OK || !strings.Contains(text.Out, part) {
			t.Errorf("%q is not in %d %s", part, text.Code, text.Out)
		}
	}

	nobody := clitest.Checker(next, "--diff", "--socket", "/nonexistent/agent.sock")
	if nobody.Code != exit.Usage || nobody.Out != "" || !strings.Contains(nobody.Err, "/nonexistent/agent.sock") || !strings.Contains(nobody.Err, "is it running?") {
		t.Errorf("without an agent: %+v", nobody)
	}
}

func TestConfigCheckAsTestResults(t *testing.T) {
	t.Parallel()
	dir := clitest.MeshDirectory(t, map[string]string{"c2": "endpoints: ['http://192.0.2.1:1']\n", "c3": "endpoints: []\n"})
	for args, want := range map[string][]string{"": {"c3"}, "--strict": {"c2", "c3"}} {
		got := clitest.Checker(append(strings.Fields(args), dir, "-o", "junit")...)
		var results struct {
			Cases []struct {
				Name    string    `xml:"name,attr"`
				Failure *struct{} `xml:"failure"`
			} `xml:"testsuite>testcase"`
		}
		if err := xml.Unmarshal([]byte(got.Out), &results); err != nil || got.Code != exit.Usage || len(results.Cases) != 3 {
			t.Fatalf("%v %+v", err, got)
		}
		var failed []string
		for _, c := range results.Cases {
			if c.Failure != nil {
				failed = append(failed, c.Name)
			}
		}
		if !slices.Equal(failed, want) {
			t.Errorf("%q failed, want %q", failed, want)
		}
	}
}

// TestConfigCheckSeesARotatedCertificate: the agent has connected with another certificate than the client file has
// now. After a new connection it uses that certificate, and a further connection would change nothing.
func TestConfigCheckSeesARotatedCertificate(t *testing.T) {
	t.Parallel()
	certs := etcdtest.NewCerts(t)
	etcd := etcdtest.Start(t, etcdtest.WithTLS(certs))
	etcd.Put(t, wire.ClusterConfigKey("cluster2"), `{"id":2,"capabilities":{}}`)
	file := etcd.ConfigFile(t)
	dir := filepath.Dir(file)
	a, _ := agenttest.InProcess(t, map[string]string{"clustermesh-config": dir, "cluster-name": "own", "cluster-id": "250"})
	connected := func() bool {
		return slices.ContainsFunc(agenttest.List[api.Cluster](a, "clusters"), func(c api.Cluster) bool { return c.Connected })
	}
	a.Until("the cluster", connected)
	changes := func() []checks.Change {
		t.Helper()
		got := clitest.CheckerNow(dir, "--diff", "--socket", a.Socket, "-o", "json", "--cluster-name=own", "--cluster-id=250")
		var r checks.Report
		if err := json.Unmarshal([]byte(got.Out), &r); err != nil || r.Diff == nil {
			t.Fatalf("%v: %+v", err, got)
		}
		return r.Diff.Changes
	}
	if all := changes(); len(all) != 0 {
		t.Fatalf("before the rotation: %+v", all)
	}
	certs.Client(t, "root") // a new certificate with a new key, in the same files
	if all := changes(); len(all) != 1 || all[0].Change != checks.Modify || !strings.Contains(strings.Join(all[0].What, ""), "certificate or key") || all[0].Vanish != nil {
		t.Errorf("after the rotation: %+v", all)
	}
	text, err := os.ReadFile(file)
	agenttest.Must(t, err)
	agenttest.Must(t, os.WriteFile(file, append(text, "# again\n"...), 0o600)) // this makes a new connection
	a.Until("the new certificate to be used", func() bool { return connected() && len(changes()) == 0 })
}
