// Package explain shows the meaning of codes, and explanations that consist of them.
package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// New returns the command.
func New(c *command.Env) *cobra.Command {
	format := printer.NewFormat(printer.Text, printer.JSON, printer.YAML)
	return command.WithOutput(&cobra.Command{
		Use:   "explain [CODE...]",
		Short: "Show the cause and the remedy of a finding code",
		Long: "Show the cause and the remedy of a finding code. Codes are in the log, in status, conflicts, events,\n" +
			"verdicts and checks. Without CODE, all of them are listed. No running agent is needed.",
		Example: "  mesh-agent explain MESH-1206\n  mesh-agent explain 1206 3101 -o yaml",
		Args:    cobra.ArbitraryArgs,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			offered := printer.Texts(codes.All(), func(e codes.Entry) string { return string(e.Code) + "\t" + e.Title })
			return offered, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			entries, err := entriesOf(args)
			if err != nil {
				return err
			}
			page := func(p *printer.Page) { pageEntries(p, entries, len(args) == 0) }
			if len(args) == 1 {
				return c.Answer(cmd, format, entries[0], page)
			}
			return c.Answer(cmd, format, entries, page)
		},
	}, format)
}

func entriesOf(args []string) ([]codes.Entry, error) {
	if len(args) == 0 {
		return codes.All(), nil
	}
	entries := make([]codes.Entry, len(args))
	for i, text := range args {
		e, known := codes.Find(text)
		if !known {
			return nil, fmt.Errorf("there is no code %q: 'mesh-agent explain' lists all of them", text)
		}
		entries[i] = e
	}
	return entries, nil
}

func pageEntries(p *printer.Page, entries []codes.Entry, list bool) {
	if list {
		printer.Rows(p, printer.Table[codes.Entry]{
			{Title: "CODE", Text: func(e codes.Entry) string { return string(e.Code) }},
			{Title: "SEVERITY", Text: func(e codes.Entry) string { return string(e.Severity) }, Color: func(e codes.Entry) printer.Color { return SeverityColor(e.Severity) }},
			{Title: "FINDING", Text: func(e codes.Entry) string { return e.Title }},
		}, entries)
		return
	}
	for i, e := range entries {
		if i > 0 {
			p.Blank()
		}
		p.Line("%s: %s (%s)", printer.Painted{Text: string(e.Code), Color: printer.Bold}, e.Title, printer.Painted{Text: string(e.Severity), Color: SeverityColor(e.Severity)})
		p.Text("%s", e.Cause)
		p.Advice("%s", e.Remedy)
	}
}

// Coded returns the code of a finding, followed by its text.
func Coded(code, text string) string { return strings.TrimSpace(code + " " + text) }

// SeverityColor returns the color of a finding.
func SeverityColor(s codes.Severity) printer.Color {
	switch s {
	case codes.Error:
		return printer.Red
	case codes.Warning:
		return printer.Yellow
	default:
		return printer.NoColor
	}
}

// Few is the number of examples in a description, when there may be many.
const Few = 5

// WriteWhy writes the verdict, and then its reasons.
func WriteWhy(p *printer.Page, x *api.Explanation, now time.Time) {
	if x == nil || x.Verdict.Code == "" {
		return
	}
	p.Section("Why")
	p.Text("%s %s", printer.Painted{Text: string(x.Verdict.Code), Color: printer.Bold}, x.Verdict.Text)
	width, all := 0, make(map[codes.Code]int)
	for _, s := range x.Steps {
		width = max(width, len(s.Cluster))
		all[s.Code]++
	}
	same := make(map[codes.Code]int)
	for _, s := range x.Steps {
		if same[s.Code]++; len(s.Keys) > 0 || same[s.Code] <= Few || all[s.Code] == Few+1 { // a line about the last one would not be shorter
			pageStep(p, s, width, now)
		}
	}
	for _, s := range x.Steps {
		if n := same[s.Code] - Few; n > 1 {
			p.Line("… and up to %d more with %s (-o yaml lists them)", n, s.Code)
			same[s.Code] = 0
		}
	}
}

func pageStep(p *printer.Page, s api.Step, width int, now time.Time) {
	text := s.Text
	if s.AsOf != nil {
		text += ", as of " + printer.Moment(s.AsOf, now)
	}
	p.Item(fmt.Sprintf("%-*s  %s  ", width, s.Cluster, s.Code), "%s", text)
	for _, k := range s.Keys {
		read := ""
		if k.Read != nil {
			read = ", read " + printer.Moment(k.Read, now)
		}
		p.Item(fmt.Sprintf("%-*s  ", width, ""), "%s, revision %d%s", k.Key, k.Revision, read)
	}
}
