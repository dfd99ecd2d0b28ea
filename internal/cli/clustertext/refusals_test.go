package clustertext

import (
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/cli/samples"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// TestRefusalRemedies: what to do depends on why, and our own file and flags are
// named where these are the cause.
func TestRefusalRemedies(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{
		"policy":    "--claim-policy-file",
		"budget":    "--remote-budget osaka.ips.keys=N",
		"too-large": "no flag raises",
		"malformed": "Whatever writes them in that cluster has to correct them",
	} {
		c := samples.GoodCluster("osaka", 7)
		c.Refusals = []api.Refusal{samples.Refused("osaka", wire.IPs, map[string]int{reason: 176})}
		got := RefusalRemedies(c)
		if len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%s: %q, want %q", reason, got, want)
		}
		if text := RefusedText(c.Refusals); text != "ips: 176 for "+reason {
			t.Errorf("%s: %s", reason, text)
		}
	}
	c := samples.GoodCluster("osaka", 7)
	c.Refusals = []api.Refusal{samples.Refused("osaka", wire.IPs, map[string]int{"policy": 1, "budget": 1, "key": 1})}
	if got := RefusalRemedies(c, c); len(got) != 3 {
		t.Errorf("several reasons: %q", got)
	}
}
