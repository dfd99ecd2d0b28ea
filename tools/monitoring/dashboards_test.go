package monitoring

import (
	"regexp"
	"strings"
	"testing"
)

// TestDashboardsAreWhole: every panel has a description and a unit, uses the selection above
// it, and overlaps no other panel.
func TestDashboardsAreWhole(t *testing.T) {
	t.Parallel()
	scoped := regexp.MustCompile(`mesh_agent_\w+(\[|\)| |$)`) // a metric without matchers
	for name, d := range Dashboards() {
		var taken [200][columns]string
		for _, p := range d.Panels {
			at := p.GridPos
			for y := at.Y; y < at.Y+at.H; y++ {
				for x := at.X; x < at.X+at.W; x++ {
					if x >= columns || taken[y][x] != "" {
						t.Fatalf("%s: %q is on %q, or outside", name, p.Title, taken[y][min(x, columns-1)])
					}
					taken[y][x] = p.Title
				}
			}
			if p.Type == "row" {
				continue
			}
			if p.Title == "" || !strings.HasSuffix(p.Description, ".") || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 {
				t.Errorf("%s: %q has no title, description, unit or query", name, p.Title)
			}
			for _, q := range p.Targets {
				if !strings.Contains(q.Expr, `cluster=~"$cluster"`) && !strings.Contains(q.Expr, "ALERTS") || scoped.MatchString(q.Expr) {
					t.Errorf("%s: %q asks for what is not chosen: %s", name, p.Title, q.Expr)
				}
			}
			for _, l := range p.Links {
				if !strings.HasPrefix(l.URL, Runbooks+"#mesh-") {
					t.Errorf("%s: %q leads to %s", name, p.Title, l.URL)
				}
			}
		}
	}
}
