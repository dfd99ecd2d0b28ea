package configcheck

import (
	"cmp"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/cli/explain"
	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/pkg/checks"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// pageChecked shows what was found: what is wrong first.
func pageChecked(p *printer.Page, r *checks.Report) {
	would := make(map[string][]checks.File)
	for _, f := range r.Files {
		would[f.Verdict] = append(would[f.Verdict], f)
	}
	p.Item("", "%s: %s would be connected, %d can not work, %s ignored; %s, %s", r.Directory,
		printer.Count(len(would[checks.WouldConnect]), "cluster"), len(would[checks.WouldFail]),
		printer.Counted(len(would[checks.WouldIgnore]), "entry", "entries"), printer.Count(r.Errors, "error"), printer.Count(r.Warnings, "warning"))
	pageFindings(p, "the directory", r.Findings)
	for _, f := range slices.SortedStableFunc(slices.Values(r.Files), faultyFirst) {
		pageFindings(p, filepath.Base(f.File), f.Findings)
	}
	if r.Diff != nil {
		pageDiff(p, r.Diff)
	}
	if clients := append(would[checks.WouldConnect], would[checks.WouldFail]...); len(clients) > 0 {
		p.Blank()
		printer.Rows(p, checkedTable(r.Connected), clients)
	}
	if ignored := would[checks.WouldIgnore]; len(ignored) > 0 {
		p.Blank()
		printer.Rows(p, ignoredTable(), ignored)
	}
}

// faultyFirst puts files with errors before those with warnings before the rest.
func faultyFirst(a, b checks.File) int { return cmp.Compare(worstOf(a.Findings), worstOf(b.Findings)) }

// worstOf ranks findings by the worst of them, which is 0 for an error.
func worstOf(findings []codes.Finding) int {
	rank := len(severities())
	for _, f := range findings {
		rank = min(rank, slices.Index(severities(), f.Severity))
	}
	return rank
}

func severities() []codes.Severity {
	return []codes.Severity{codes.Error, codes.Warning, codes.Info}
}

// pageFindings shows findings, the worst first, each with what to do about it
// unless it is only a note.
func pageFindings(p *printer.Page, of string, findings []codes.Finding) {
	if len(findings) == 0 {
		return
	}
	p.Section("%s", of)
	for _, severity := range severities() {
		word := map[codes.Severity]string{codes.Error: "error:   ", codes.Warning: "warning: ", codes.Info: "note:    "}[severity]
		for _, f := range findings {
			if f.Severity != severity {
				continue
			}
			p.Item(word, "%s", printer.Painted{Text: f.String(), Color: explain.SeverityColor(severity)})
			if severity != codes.Info {
				p.Item("         → ", "%s", f.Remedy)
			}
		}
	}
	p.End()
}

// pageDiff shows what would change in the running agent.
func pageDiff(p *printer.Page, d *checks.Diff) {
	n := make(map[string]int)
	for _, c := range d.Changes {
		n[c.Change]++
	}
	p.Section("against the running agent of %s (%s)", d.Agent, cmp.Or(d.Directory, "no mesh directory"))
	p.Item("", "%d added, %d changed, %d removed, %d unchanged; %s would vanish",
		n[checks.Add], n[checks.Modify], n[checks.Remove], d.Unchanged, checks.Entries(&d.Vanish))
	p.End()
	if len(d.Changes) > 0 {
		p.Blank()
		printer.Rows(p, diffTable(), d.Changes)
	}
}

func diffTable() printer.Table[checks.Change] {
	mark := map[string]string{checks.Add: "+ ", checks.Modify: "~ ", checks.Remove: "- "}
	color := map[string]printer.Color{checks.Add: printer.Green, checks.Modify: printer.Yellow, checks.Remove: printer.Red}
	return printer.Table[checks.Change]{
		{
			Title: "  CLUSTER", Text: func(c checks.Change) string { return mark[c.Change] + c.Cluster },
			Color: func(c checks.Change) printer.Color { return color[c.Change] },
		},
		{Title: "WOULD VANISH", Text: func(c checks.Change) string {
			if c.Vanish == nil {
				return ""
			}
			return checks.Entries(c.Vanish)
		}},
		{Title: "WHAT CHANGES", Text: func(c checks.Change) string {
			switch c.Change {
			case checks.Add:
				return "new"
			case checks.Remove:
				return "no client file"
			}
			return strings.Join(c.What, "; ")
		}},
	}
}

// checkedTable is that of the client files, with what their servers say when they
// were asked.
func checkedTable(connected bool) printer.Table[checks.File] {
	t := printer.Table[checks.File]{
		{Title: "CLUSTER", Text: func(f checks.File) string { return f.Cluster }},
		{Title: "WOULD", Text: func(f checks.File) string { return f.Verdict }, Color: func(f checks.File) printer.Color {
			return printer.WellColor(f.Verdict == checks.WouldConnect)
		}},
		{Title: "AS", Text: func(f checks.File) string { return f.User }},
		{Title: "CERTIFICATE UNTIL", Text: func(f checks.File) string {
			if f.CertificateExpires == nil {
				return ""
			}
			return f.CertificateExpires.UTC().Format(time.DateOnly)
		}},
	}
	if connected {
		t = append(t, printer.Column[checks.File]{Title: "ID", Right: true, Text: func(f checks.File) string {
			if f.ClusterID == 0 {
				return ""
			}
			return strconv.FormatUint(uint64(f.ClusterID), 10)
		}})
	}
	return append(t, printer.Column[checks.File]{Title: "ENDPOINTS", Text: func(f checks.File) string {
		texts := make([]string, len(f.Endpoints))
		for i, ep := range f.Endpoints {
			texts[i] = ep.URL + " (no TLS)"
			if ep.TLS {
				texts[i] = ep.URL + " (TLS)"
			}
		}
		return strings.Join(texts, ", ")
	}})
}

func ignoredTable() printer.Table[checks.File] {
	return printer.Table[checks.File]{
		{Title: "IGNORED", Text: func(f checks.File) string { return filepath.Base(f.File) }},
		{Title: "WHY", Text: func(f checks.File) string { return f.Reason }},
	}
}
