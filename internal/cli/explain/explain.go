// Package explain shows what codes mean, and the explanations that are made of them.
package explain

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// New returns the command.
func New(c *command.Env) *cobra.Command {
	format := printer.NewFormat(printer.Text, printer.JSON, printer.YAML)
	cmd := &cobra.Command{
		Use:   "explain [CODE...]",
		Short: "Show what the code of a finding means, and what to do",
		Long: "Show what the code of a finding means, and what to do. Codes are in the log, in status, conflicts, events,\n" +
			"verdicts and checks. Without CODE, all of them are listed. No running agent is needed.",
		Example: "  mesh-agent explain MESH-1206\n  mesh-agent explain 1206 3101 -o yaml",
		Args:    cobra.ArbitraryArgs,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var all []string
			for _, e := range codes.All() {
				all = append(all, string(e.Code)+"\t"+e.Title)
			}
			return all, cobra.ShellCompDirectiveNoFileComp
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
	}
	cmd.Flags().VarP(format, "output", "o", "form of the output")
	return cmd
}

// entriesOf finds the codes of the arguments, all codes without any.
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

// Coded puts the code of a finding before its text.
func Coded(code, text string) string { return strings.TrimSpace(code + " " + text) }

// SeverityColor is the color of a finding.
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
