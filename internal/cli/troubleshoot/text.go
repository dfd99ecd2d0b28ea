package troubleshoot

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/pkg/troubleshoot"
)

// page shows a block for each configuration, and last what became of all.
func (t *troubles) page(p *printer.Page) {
	if len(t.Clusters) == 0 {
		p.Line("No client file in %s: there is nothing to check. 'mesh-agent config check' says what is ignored.", t.Directory)
		return
	}
	p.Line("%s of %s", printer.Count(len(t.Clusters), "configuration"), t.Directory)
	for _, r := range t.Clusters {
		p.Section("%s", reportName(r))
		pageSteps(p, r.Steps)
		p.End()
	}
	p.Blank()
	p.Line("%s", t.verdict())
}

// pageSteps shows a line for each step, those of an endpoint below its URL.
func pageSteps(p *printer.Page, steps []troubleshoot.Step) {
	endpoint := ""
	for _, s := range steps {
		if s.Endpoint != endpoint && s.Endpoint != "" {
			p.Line("%s", s.Endpoint)
		}
		endpoint = s.Endpoint
		indent := ""
		if endpoint != "" {
			indent = "  "
		}
		mark, color := markOf(s.State)
		p.Item(fmt.Sprintf("%s%s %-*s", indent, mark, 23-len(indent), s.Name), "%s", cmp.Or(s.Detail, string(s.State)))
		for _, f := range s.Findings {
			p.Item(indent+"    ", "%s", printer.Painted{Text: f.String(), Color: color})
			p.Item(indent+"    → ", "%s", f.Remedy)
		}
	}
}

func markOf(s troubleshoot.State) (string, printer.Color) {
	switch s {
	case troubleshoot.OK:
		return "✓", printer.Green
	case troubleshoot.Warning:
		return "!", printer.Yellow
	case troubleshoot.Failed:
		return "✗", printer.Red
	default:
		return "-", printer.NoColor
	}
}

// reportName is what a configuration is of.
func reportName(r troubleshoot.Report) string {
	if r.Local {
		return "local kvstore of " + r.Name
	}
	return r.Name
}

// verdict sums up: what fails, or else what is a warning, with its steps.
func (t *troubles) verdict() printer.Painted {
	all := printer.Count(len(t.Clusters), "configuration") + " checked: "
	switch {
	case t.Failed > 0:
		return printer.Painted{Text: all + printer.Counted(t.Failed, "fails", "fail") + ": " + t.those(troubleshoot.Failed), Color: printer.Red}
	case t.Warnings > 0:
		return printer.Painted{Text: all + "nothing fails, with warnings: " + t.those(troubleshoot.Warning), Color: printer.Yellow}
	}
	return printer.Painted{Text: all + "all is well", Color: printer.Green}
}

// those names the configurations in a state, with their steps in it.
func (t *troubles) those(state troubleshoot.State) string {
	var texts []string
	for _, r := range t.Clusters {
		if r.State == state {
			texts = append(texts, fmt.Sprintf("%s (%s)", reportName(r), strings.Join(r.In(state), ", ")))
		}
	}
	return printer.Some(texts, 10)
}
