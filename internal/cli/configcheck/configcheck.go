// Package configcheck checks a mesh directory before it is applied.
package configcheck

import (
	"cmp"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/cli/explain"
	"github.com/mesh-agent/mesh-agent/internal/diagnose/checks"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// New returns the command.
func New(c *command.Env) *cobra.Command {
	return command.Group("config", "Check the configuration, without a running agent", configCheckCommand(c))
}

// junit is the output format for programs that collect test results.
const junit = "junit"

type configCheck struct {
	settings              *config.Settings
	strict, connect, diff bool
	format                *printer.Format
}

func configCheckCommand(c *command.Env) *cobra.Command {
	k := configCheck{settings: config.NewSettings(), format: printer.NewFormat(printer.Text, printer.JSON, printer.YAML, junit)}
	cmd := &cobra.Command{
		Use:   "check [DIR]",
		Short: "Check a mesh directory: which clusters would be connected, which files would be ignored, and why",
		Long: "Check a mesh directory before it is applied: which clusters would be connected, which files would be ignored, and why. It\n" +
			"opens no connection and needs no running agent. The default of DIR is the value of --clustermesh-config.\n" +
			"Without both, it takes the missing settings from the agent on this machine, if its socket answers, and shows them.\n\n" +
			"With --connect it also connects to the servers, like 'mesh-agent troubleshoot', and compares their answers: cluster IDs, and\n" +
			"files that lead to the same etcd. With --diff it compares with the running agent (--server, --socket): what the directory would\n" +
			"add, change and remove there, and how many entries would be lost; contents of client files are compared over the socket only.\n\n" +
			"With --claim-policy-file it also checks this file, and with --connect it shows the entries that the policy would refuse.\n\n" +
			"Every finding has a code, which 'mesh-agent explain CODE' explains.\n\n" +
			"Exit code 0: no errors. 1: warnings, with --strict only. 2: there are\n" +
			"errors, the usage is wrong, the directory cannot be read, or with --diff no agent answers.",
		Example: "  mesh-agent config check\n  mesh-agent config check ./clustermesh --cluster-name east --strict\n" +
			"  mesh-agent config check ./clustermesh --cluster-name east --cluster-id 7 --connect --diff\n" +
			"  mesh-agent config check ./clustermesh -o junit > config-check.xml",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 { // the argument has the same meaning as the flag
				return cmd.Flags().Set(config.DirectoryFlag, args[0])
			}
			return command.Arguments(0, 1, "at most one DIR")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return check(c, cmd, k) },
	}
	k.settings.Register(cmd.Flags(), flags()...)
	cmd.Flags().BoolVar(&k.strict, "strict", false, "exit with code 1 if there are warnings")
	cmd.Flags().BoolVar(&k.connect, "connect", false, "also connect to the servers, for at most 15 seconds each")
	cmd.Flags().BoolVar(&k.diff, "diff", false, "compare with the running agent")
	cmd.Flags().VarP(k.format, "output", "o", "output format")
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return cmd
}

func check(c *command.Env, cmd *cobra.Command, k configCheck) error {
	cfg, err := c.ResolveFromAgent(cmd, k.settings, flags()...)
	if err != nil {
		return err
	}
	if err := k.settings.Check(append(config.OwnFlags(), config.RemoteBudget)...); err != nil {
		return err
	}
	report, err := checks.Directory(cfg.ClustermeshConfig, cfg.ClusterName, time.Now())
	if err != nil {
		return exit.UsageError{Err: err}
	}
	var agent *api.Status
	var key string
	if k.diff { // before the servers are checked, which takes longer
		if agent, key, err = agentStatus(c, cmd); err != nil {
			return err
		}
	}
	if k.connect {
		o := c.Troubleshooting
		o.Own = cfg.Own
		if report.Connect(cmd.Context(), o); cmd.Context().Err() != nil {
			return cmd.Context().Err()
		}
	}
	report.Budgets(cfg.RemoteBudget)
	if file := cfg.Claims.ClaimPolicyFile; file != "" {
		o := c.Troubleshooting
		o.Own = cfg.Own
		if report.Policy(cmd.Context(), file, o, cfg.RemoteBudget); cmd.Context().Err() != nil {
			return cmd.Context().Err()
		}
	}
	if agent != nil {
		report.Compare(agent, key)
	}
	return exit.Verdict(writeChecked(c, cmd, report, k), report.Errors > 0, k.strict && report.Warnings > 0)
}

// flags returns the agent's flags whose values are checked.
func flags() []string {
	return []string{config.DirectoryFlag, "cluster-name", "cluster-id", "max-connected-clusters", "claim-policy-file", config.RemoteBudget}
}

// agentStatus requests the status of the agent that the flags choose, and the key of its configHash. Older agents do
// not have the key, and no agent gives it over TCP.
func agentStatus(c *command.Env, cmd *cobra.Command) (st *api.Status, key string, err error) {
	cl, err := c.Connect(cmd)
	if err != nil {
		return nil, "", err
	}
	defer cl.Close()
	st, err = cl.Status(cmd.Context())
	if err != nil {
		return nil, "", err
	}
	given, err := cl.ConfigKey(cmd.Context())
	if _, refused := errors.AsType[*api.Problem](err); refused {
		return st, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	return st, given.Key, nil
}

func writeChecked(c *command.Env, cmd *cobra.Command, r *checks.Report, k configCheck) error {
	if k.format.String() == junit {
		return r.JUnit(cmd.OutOrStdout(), k.strict)
	}
	return c.Answer(cmd, k.format, r, func(p *printer.Page) { pageChecked(p, r) })
}

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
		printer.Rows(p, printer.Table[checks.File]{
			{Title: "IGNORED", Text: func(f checks.File) string { return filepath.Base(f.File) }},
			{Title: "WHY", Text: func(f checks.File) string { return f.Reason }},
		}, ignored)
	}
}

func faultyFirst(a, b checks.File) int { return cmp.Compare(worstOf(a.Findings), worstOf(b.Findings)) }

// worstOf returns the rank of the worst finding; 0 is an error.
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

// pageFindings writes findings, the worst first, each with its remedy unless it is only a note.
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
				p.AdviceItem("         ", "%s", f.Remedy)
			}
		}
	}
}

func pageDiff(p *printer.Page, d *checks.Diff) {
	n := make(map[string]int)
	for _, c := range d.Changes {
		n[c.Change]++
	}
	p.Section("against the running agent of %s (%s)", d.Agent, cmp.Or(d.Directory, "no mesh directory"))
	p.Item("", "%d added, %d changed, %d removed, %d unchanged; %s would be removed",
		n[checks.Add], n[checks.Modify], n[checks.Remove], d.Unchanged, checks.Entries(&d.Vanish))
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

// checkedTable returns the table of the client files, with data of their servers if these were checked.
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
		t = append(t, printer.Column[checks.File]{Title: "ID", Right: true, Text: func(f checks.File) string { return printer.Number(f.ClusterID) }})
	}
	return append(t, printer.Column[checks.File]{Title: "ENDPOINTS", Text: func(f checks.File) string {
		return printer.Join(f.Endpoints, ", ", func(ep checks.Endpoint) string {
			if ep.TLS {
				return ep.URL + " (TLS)"
			}
			return ep.URL + " (no TLS)"
		})
	}})
}
