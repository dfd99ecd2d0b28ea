package main

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

func (c *cli) configCommand() *cobra.Command {
	return group("config", "Look at the configuration without a running agent", c.configCheckCommand())
}

func (c *cli) configCheckCommand() *cobra.Command {
	var (
		s      = newSettings()
		strict bool
		format = printer.NewFormat(printer.Text, printer.JSON, printer.YAML)
	)
	cmd := &cobra.Command{
		Use:   "check [DIR]",
		Short: "Check a mesh directory: which clusters would be connected, what would be ignored, and why",
		Long: "Check a mesh directory: which clusters would be connected, what would be ignored, and why. It connects to\n" +
			"nothing and needs no running agent. DIR is that of --clustermesh-config when it is not given.\n\n" +
			"Exit code 0: nothing is wrong. 1: there are warnings, with --strict only. 2: something can never work.",
		Example: "  mesh-agent config check\n  mesh-agent config check ./clustermesh --cluster-name east --strict",
		Args:    arguments(0, 1, "at most one DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			settled, err := c.settle(cmd, s)
			if err != nil {
				return err
			}
			if err := s.validateOwn(settled); err != nil {
				return err
			}
			dir := settled.ClustermeshConfig
			if len(args) == 1 {
				dir = args[0]
			}
			checked, err := clustermesh.Check(dir, settled.ClusterName, time.Now())
			if err != nil {
				return usageError{err}
			}
			out := cmd.OutOrStdout()
			page := func(p *printer.Page) { pageChecked(p, checked) }
			if err := answer(out, printer.StyleFor(out, c.getenv), format, checked, page); err != nil {
				return err
			}
			return verdict(checked.Errors > 0, strict && checked.Warnings > 0)
		},
	}
	s.register(cmd.Flags(), "clustermesh-config", "cluster-name", "cluster-id", "max-connected-clusters")
	cmd.Flags().BoolVar(&strict, "strict", false, "exit with 1 when there are warnings")
	cmd.Flags().VarP(format, "output", "o", "form of the output")
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return cmd
}

// settle returns the settings of a command that has some of run's flags.
func (c *cli) settle(cmd *cobra.Command, s *settings) (Config, error) {
	if err := c.environment(cmd.Flags()); err != nil {
		return Config{}, err
	}
	return s.load(c.getenv)
}

// validateOwn checks the settings that say which cluster is the own one.
func (s *settings) validateOwn(c Config) error {
	err := wire.ValidateMaxConnectedClusters(c.MaxConnectedClusters)
	flags := []string{"max-connected-clusters"}
	if err == nil {
		err, flags = c.local().Validate(), []string{"cluster-name", "cluster-id"}
	}
	if err == nil {
		return nil
	}
	return usagef("%s", s.explain(&settingError{flags, err}))
}

// pageChecked shows what was found: what is wrong first.
func pageChecked(p *printer.Page, c *clustermesh.Checked) {
	would := make(map[string][]clustermesh.CheckedFile)
	for _, f := range c.Files {
		would[f.Verdict] = append(would[f.Verdict], f)
	}
	p.Line("%s: %s would be connected, %d can not work, %s ignored; %s, %s", c.Directory,
		count(len(would[clustermesh.CheckConnect]), "cluster"), len(would[clustermesh.CheckFail]),
		counted(len(would[clustermesh.CheckIgnore]), "entry", "entries"), count(c.Errors, "error"), count(c.Warnings, "warning"))
	for _, f := range slices.SortedStableFunc(slices.Values(c.Files), faultyFirst) {
		writeFindings(p, f)
	}
	if clients := append(would[clustermesh.CheckConnect], would[clustermesh.CheckFail]...); len(clients) > 0 {
		p.Blank()
		printer.Rows(p, checkedTable(), clients)
	}
	if ignored := would[clustermesh.CheckIgnore]; len(ignored) > 0 {
		p.Blank()
		printer.Rows(p, ignoredTable(), ignored)
	}
}

// faultyFirst puts errors before warnings before the rest.
func faultyFirst(a, b clustermesh.CheckedFile) int {
	return cmp.Or(cmp.Compare(min(len(b.Errors), 1), min(len(a.Errors), 1)), cmp.Compare(min(len(b.Warnings), 1), min(len(a.Warnings), 1)))
}

func writeFindings(p *printer.Page, f clustermesh.CheckedFile) {
	list := func(kind string, color printer.Color, texts []string) {
		for _, text := range texts {
			p.Line("%s %s", printer.Painted{Text: kind, Color: color}, text)
		}
	}
	if len(f.Errors)+len(f.Warnings)+len(f.Notes) > 0 {
		p.Section("%s", filepath.Base(f.File))
	}
	list("error:  ", printer.Red, f.Errors)
	list("warning:", printer.Yellow, f.Warnings)
	list("note:   ", printer.NoColor, f.Notes)
	p.End()
}

func checkedTable() printer.Table[clustermesh.CheckedFile] {
	return printer.Table[clustermesh.CheckedFile]{
		{Title: "CLUSTER", Text: func(f clustermesh.CheckedFile) string { return f.Cluster }},
		{Title: "WOULD", Text: func(f clustermesh.CheckedFile) string { return f.Verdict }, Color: func(f clustermesh.CheckedFile) printer.Color {
			return wellColor(f.Verdict == clustermesh.CheckConnect)
		}},
		{Title: "AS", Text: func(f clustermesh.CheckedFile) string { return f.User }},
		{Title: "CERTIFICATE UNTIL", Text: func(f clustermesh.CheckedFile) string {
			if f.CertificateExpires == nil {
				return ""
			}
			return f.CertificateExpires.UTC().Format(time.DateOnly)
		}},
		{Title: "ENDPOINTS", Text: func(f clustermesh.CheckedFile) string {
			texts := make([]string, len(f.Endpoints))
			for i, ep := range f.Endpoints {
				texts[i] = ep.URL + " (no TLS)"
				if ep.TLS {
					texts[i] = ep.URL + " (TLS)"
				}
			}
			return strings.Join(texts, ", ")
		}},
	}
}

func ignoredTable() printer.Table[clustermesh.CheckedFile] {
	return printer.Table[clustermesh.CheckedFile]{
		{Title: "IGNORED", Text: func(f clustermesh.CheckedFile) string { return filepath.Base(f.File) }},
		{Title: "WHY", Text: func(f clustermesh.CheckedFile) string { return f.Reason }},
	}
}
