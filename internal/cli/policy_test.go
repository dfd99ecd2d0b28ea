package cli_test

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/claims"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
	"github.com/mesh-agent/mesh-agent/simtest/clitest"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest"
	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
)

// suggested writes the policy file that an agent suggests, and returns its path and text.
func suggested(t *testing.T, a *agenttest.Process) (file, text string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "claims.yaml")
	if _, errs, code := a.Call("policy", "suggest", "--output-file", file); code != exit.OK || errs != "" {
		t.Fatalf("exit %d: %s", code, errs)
	}
	content, err := os.ReadFile(file)
	agenttest.Must(t, err)
	if _, err := claims.Parse(content); err != nil {
		t.Fatalf("%v\n%s", err, content)
	}
	return file, string(content)
}

// TestWhatIsSuggestedRefusesOnlyWhatBreaksARule: an agent with the suggested file has the same entries as the agent
// that suggested it, except for the address of one cluster that another one claims too.
func TestWhatIsSuggestedRefusesOnlyWhatBreaksARule(t *testing.T) {
	t.Parallel()
	one, two := contents.Default("cluster1", 1), contents.Default("cluster2", 2)
	one.ServiceExports = true
	m := meshtest.Run(t, one, two)
	second := m.Clusters()[1]
	flags := map[string]string{"clustermesh-config": m.Dir(), "cluster-name": "own", "cluster-id": "250"}
	a, stop := agenttest.InProcess(t, flags)
	ready := func(p *agenttest.Process) func() bool {
		return func() bool { return slices.Equal(p.ReadyClusters(), []string{"cluster1", "cluster2"}) }
	}
	a.Until("both clusters", ready(a))
	var contested string
	for _, ip := range agenttest.List[api.IP](a, "ips") {
		if ip.Cluster == "cluster1" && ip.Kind == "endpoint" {
			contested = ip.Prefix
			break
		}
	}
	address, _, _ := strings.Cut(contested, "/")
	if _, _, err := m.Claim(t.Context(), second, netip.MustParseAddr(address)); err != nil {
		t.Fatal(err)
	}
	a.Until("a conflict", func() bool {
		return slices.ContainsFunc(a.Conflicts(), func(c string) bool { return strings.Contains(c, contested) })
	})
	before := agenttest.List[api.Cluster](a, "clusters")

	file, text := suggested(t, a)
	if _, errs, code := a.Call("policy", "suggest", "--output-file", file); code != exit.Unwell || !strings.Contains(errs, "exists") {
		t.Errorf("over a file: exit %d, %s", code, errs)
	}
	stop()
	agenttest.Must(t, os.WriteFile(file, []byte(strings.Replace(text, "default: allow", "default: deny", 1)), 0o600))
	flags["claim-policy-file"] = file
	b, _ := agenttest.InProcess(t, flags)
	b.Until("both clusters with the file", ready(b))
	left := regexp.MustCompile(`NOT GRANTED, MESH-3112, in \S+ of cluster1: "` + regexp.QuoteMeta(contested) + `"`)
	if !left.MatchString(text) || strings.Count(text, "NOT GRANTED") != 1 {
		t.Errorf("%s of cluster2 is not left out by itself:\n%s", contested, text)
	}
	for i, c := range agenttest.List[api.Cluster](b, "clusters") {
		want, refused := before[i].Counts, before[i].Rejected
		if c.Name == "cluster2" {
			want.IPs, refused.IPs = want.IPs-1, refused.IPs+1
		}
		if c.Rejected != refused || c.Counts != want || c.Counts.IPs == 0 {
			t.Errorf("%s: refused %+v, %+v of %+v\n%s", c.Name, c.Refusals, c.Counts, before[i].Counts, text)
		}
	}

	check := func() clitest.Result {
		return clitest.CheckerNow(m.Dir(), "--connect", "--claim-policy-file", file, "--cluster-name=own", "--cluster-id=250")
	}
	if got := check(); strings.Count(got.Out, "MESH-632") != 1 || !strings.Contains(got.Out, "would refuse 1 of the 201 ips of cluster2") {
		t.Errorf("a check of what is suggested: %+v", got)
	}

	// The file does restrict: an address outside of its ranges is refused.
	outside := wire.IPIdentityPair{IP: net.IPv4(203, 0, 113, 7), Identity: 2<<16 + 1}
	if err := second.Put(t.Context(), outside.Key(), outside.Encode()); err != nil {
		t.Fatal(err)
	}
	b.Until("a refusal", func() bool { return agenttest.List[api.Cluster](b, "clusters")[1].Rejected.IPs == 2 })
	if got := check(); !strings.Contains(got.Out, "would refuse 2 of the 202 ips of cluster2, such as ") || !strings.Contains(got.Out, "[MESH-6324]") {
		t.Errorf("a check of what is refused: %+v", got)
	}
}

func TestSuggestWithoutAnAgent(t *testing.T) {
	t.Parallel()
	got := clitest.With(nil, "", "").Run("policy", "suggest", "--socket", "/nonexistent/a.sock")
	if got.Code != exit.Usage || got.Out != "" {
		t.Errorf("%+v", got)
	}
}
