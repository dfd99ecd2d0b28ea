package main

import (
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/checks"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

func (c *cli) configCommand() *cobra.Command {
	return group("config", "Look at the configuration without a running agent", c.configCheckCommand())
}

// junit is the form of output for programs that collect the results of tests.
const junit = "junit"

// configCheck is what the command was asked for.
type configCheck struct {
	settings              *settings
	strict, connect, diff bool
	format                *printer.Format
}

func (c *cli) configCheckCommand() *cobra.Command {
	k := configCheck{settings: newSettings(), format: printer.NewFormat(printer.Text, printer.JSON, printer.YAML, junit)}
	cmd := &cobra.Command{
		Use:   "check [DIR]",
		Short: "Check a mesh directory: which clusters would be connected, what would be ignored, and why",
		Long: "Check a mesh directory before it is applied: which clusters would be connected, what would be ignored, and why. It\n" +
			"connects to nothing and needs no running agent. DIR is that of --clustermesh-config when it is not given.\n\n" +
			"With --connect it asks the servers too, as 'mesh-agent troubleshoot' does, and compares what they say: cluster IDs, and\n" +
			"files that lead to one etcd. With --diff it asks the running agent (--server, --socket) what the directory would add,\n" +
			"change and remove there, and how many entries would vanish; contents of client files are compared over the socket only.\n\n" +
			"With --claim-policy-file it checks that file too, and with --connect tells what it would refuse of what the clusters have.\n\n" +
			"Every finding has a code, which 'mesh-agent explain CODE' explains.\n\n" +
			"Exit code 0: nothing is wrong, or there are notes and warnings. 1: there are warnings, with --strict only. 2: there are\n" +
			"errors, the usage is wrong, the directory cannot be read, or with --diff no agent answers.",
		Example: "  mesh-agent config check\n  mesh-agent config check ./clustermesh --cluster-name east --strict\n" +
			"  mesh-agent config check ./clustermesh --cluster-name east --cluster-id 7 --connect --diff\n" +
			"  mesh-agent config check ./clustermesh -o junit > config-check.xml",
		Args: arguments(0, 1, "at most one DIR"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.configCheck(cmd, args, k) },
	}
	k.settings.register(cmd.Flags(), "clustermesh-config", "cluster-name", "cluster-id", "max-connected-clusters", "claim-policy-file", remoteBudget)
	cmd.Flags().BoolVar(&k.strict, "strict", false, "exit with 1 when there are warnings")
	cmd.Flags().BoolVar(&k.connect, "connect", false, "ask the servers too; each takes 15 seconds at the most")
	cmd.Flags().BoolVar(&k.diff, "diff", false, "compare with the running agent")
	cmd.Flags().VarP(k.format, "output", "o", "form of the output")
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return cmd
}

func (c *cli) configCheck(cmd *cobra.Command, args []string, k configCheck) error {
	settled, err := c.settle(cmd, k.settings)
	if err != nil {
		return err
	}
	if err := k.settings.validateOwn(settled); err != nil {
		return err
	}
	dir := settled.ClustermeshConfig
	if len(args) == 1 {
		dir = args[0]
	}
	report, err := checks.Directory(dir, settled.ClusterName, time.Now())
	if err != nil {
		return usageError{err}
	}
	var agent *api.Status
	var key string
	if k.diff { // before the servers, which take longer
		if agent, key, err = c.agentStatus(cmd); err != nil {
			return err
		}
	}
	if k.connect {
		o := c.troubleshooting
		o.Own = settled.local()
		if report.Connect(cmd.Context(), o); cmd.Context().Err() != nil {
			return cmd.Context().Err()
		}
	}
	budgets, err := budget.Parse(settled.RemoteBudget)
	if err != nil {
		return usagef("--%s: %w", remoteBudget, err)
	}
	report.Budgets(budgets)
	if file := settled.Claims.ClaimPolicyFile; file != "" {
		o := c.troubleshooting
		o.Own = settled.local()
		if report.Policy(cmd.Context(), file, o, budgets); cmd.Context().Err() != nil {
			return cmd.Context().Err()
		}
	}
	if agent != nil {
		report.Compare(agent, key)
	}
	if err := c.writeChecked(cmd.OutOrStdout(), report, k); err != nil {
		return err
	}
	return verdict(report.Errors > 0, k.strict && report.Warnings > 0)
}

// agentStatus asks the agent that the flags choose, and for the key of its
// configHash, which not all agents give, and not to all.
func (c *cli) agentStatus(cmd *cobra.Command) (st *api.Status, key string, err error) {
	cl, err := c.connect(cmd)
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

func (c *cli) writeChecked(out io.Writer, r *checks.Report, k configCheck) error {
	if k.format.String() == junit {
		return r.JUnit(out, k.strict)
	}
	return answer(out, printer.StyleFor(out, c.getenv), k.format, r, func(p *printer.Page) { pageChecked(p, r) })
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
