package clustertext

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/samples"
)

// TestExportsAreNoTroubleOfACluster: exports are shown for a cluster that has some, and their absence does not make a
// cluster less fresh.
func TestExportsAreNoTroubleOfACluster(t *testing.T) {
	t.Parallel()
	c, yes := samples.GoodCluster("c2", 2), true
	names := func() (all []string) {
		for _, r := range resourceRows(&c) {
			all = append(all, r.name)
		}
		return all
	}
	c.Freshness.ServiceExports = api.Freshness{State: "synced", AsOf: samples.Before(time.Second)}
	if all := names(); slices.Contains(all, "serviceExports") {
		t.Errorf("a cluster without exports shows %v", all)
	}
	c.Capabilities.ServiceExportsEnabled, c.Freshness.ServiceExports = &yes, api.Freshness{State: "unknown", Message: "the canary is missing"}
	if all := names(); !slices.Contains(all, "serviceExports") {
		t.Errorf("a cluster with exports shows %v", all)
	}
	var out strings.Builder
	p := printer.NewPage(&out, printer.Style{})
	c.Assess()
	WritePage(p, &c, nil, time.Now())
	if err := p.Flush(); err != nil || !strings.Contains(out.String(), "serviceExports: the canary is missing") {
		t.Errorf("%v: not said why there are none:\n%s", err, out.String())
	}
	if text := FreshnessText(c); text != "synced 0.4s" || !c.Well() || !c.Fresh() || !c.Complete() {
		t.Errorf("freshness %q, well %t, fresh %t, complete %t", text, c.Well(), c.Fresh(), c.Complete())
	}
}

func TestClusterText(t *testing.T) {
	t.Parallel()
	text := printer.NewFormat(printer.Text)
	held := samples.HeldClusters()[2]
	held.Name = "held"
	for _, c := range append(append(samples.OneOfEach(), samples.Policed()[1:]...), held, samples.Noticed()[1]) {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			c.Assess()
			if err := command.Answer(&out, printer.Style{}, text, &c, func(p *printer.Page) { WritePage(p, &c, nil, samples.Now) }); err != nil {
				t.Fatal(err)
			}
			samples.Golden(t, "cluster-"+c.Name, out.String())
		})
	}
}

// TestEndpointSlicesAreShown: they are in each list of a cluster's resources, and have no row for a cluster without
// any.
func TestEndpointSlicesAreShown(t *testing.T) {
	t.Parallel()
	age := 95.0
	stale := api.Freshness{State: "stale", AsOf: samples.Before(95 * time.Second), AgeSeconds: &age}
	c := samples.Exporting("kyoto", wire.EndpointSlicesBoth, samples.GoodCluster("", 0).Freshness.Services, stale)
	c.Counts.EndpointSlices, c.Rejected.EndpointSlices = 77, 5
	c.Assess()
	if got := FreshnessText(c); got != "stale 1m35s" {
		t.Errorf("freshness %q", got)
	}
	if got := Sum(c.Counts); got != 3+40+77+200+1200 {
		t.Errorf("%d entries", got)
	}
	named := func(c *api.Cluster) (names []string) {
		for _, r := range resourceRows(c) {
			names = append(names, r.name)
		}
		return names
	}
	if got := strings.Join(named(&c), " "); got != "nodes services endpointSlices identities ips" {
		t.Errorf("rows: %s", got)
	}
	for _, state := range []string{"", "unknown", "synced"} {
		none := samples.Exporting("kyoto", wire.EndpointSlicesServicesOnly, c.Freshness.Services, api.Freshness{State: state})
		none.Assess()
		if got := strings.Join(named(&none), " "); got != "nodes services identities ips" || FreshnessText(none) != "synced 0.4s" {
			t.Errorf("slices %q: rows %s, %s", state, got, FreshnessText(none))
		}
	}
}

// TestWhatIsNotReadCountsForNothing: resources that an agent does not read do not affect freshness; an operator reads
// only the services of remote clusters.
func TestWhatIsNotReadCountsForNothing(t *testing.T) {
	t.Parallel()
	c := samples.GoodCluster("c2", 2)
	for r, f := range c.Freshness.All() {
		if r != wire.Services && r != wire.EndpointSlices {
			*f, *c.Synced.Of(r), *c.Counts.Of(r) = api.Freshness{State: "unknown", NotRead: true}, false, 0
		}
	}
	c.Assess()
	if text := FreshnessText(c); text != "synced 0.4s" || !c.Well() || !c.Complete() {
		t.Errorf("freshness %q, well %t, complete %t", text, c.Well(), c.Complete())
	}
	if rows := resourceRows(&c); len(rows) != 1 || rows[0].name != "services" {
		t.Errorf("rows: %v", rows)
	}
	c.Freshness.Nodes.NotRead = false
	c.Assess()
	if c.Well() || c.Complete() || c.Freshness.Worst.State != "unknown" {
		t.Errorf("nodes that were never read: well %t, complete %t, %+v", c.Well(), c.Complete(), c.Freshness.Worst)
	}
}

// TestRefusalRemedies: the remedy depends on the reason, and names our own file or flag if that is the cause.
func TestRefusalRemedies(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{
		"policy":    "--claim-policy-file",
		"budget":    "--remote-budget osaka.ips.keys=N",
		"too-large": "no flag raises",
		"malformed": "Correct the program that writes them in that cluster",
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
