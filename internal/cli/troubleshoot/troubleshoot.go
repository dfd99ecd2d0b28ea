// Package troubleshoot checks step by step why an agent cannot connect to a cluster.
package troubleshoot

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/base/natural"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/cli/target"
	"github.com/mesh-agent/mesh-agent/internal/diagnose/troubleshoot"
)

type troubles struct {
	Directory string                `json:"directory"` // the mesh directory
	Failed    int                   `json:"failed"`    // clusters with a step that failed
	Warnings  int                   `json:"warnings"`  // other clusters, with a warning
	Clusters  []troubleshoot.Report `json:"clusters"`
}

// New returns the command.
func New(c *command.Env) *cobra.Command {
	var (
		s      = config.NewSettings()
		flags  = []string{config.DirectoryFlag, "cluster-name", "cluster-id", "max-connected-clusters", config.KVStoreFlag}
		local  bool
		format = printer.NewFormat(printer.Text, printer.JSON, printer.YAML)
	)
	cmd := &cobra.Command{
		Use:   "troubleshoot [CLUSTER...]",
		Short: "Check the connection to a cluster step by step, without a running agent",
		Long: "Check the connections to the clusters of the mesh directory step by step: client file, certificates, names, TCP, TLS,\n" +
			"etcd, the rights of its user, heartbeat and cluster configuration. A step that fails shows the cause and the remedy.\n" +
			"It needs no running agent, and writes nothing. Without a CLUSTER it checks all clusters; each takes at most 15\n" +
			"seconds. Without --clustermesh-config, it takes the missing settings from the agent on this machine, if its socket\n" +
			"answers, and shows them.\n\n" +
			"Exit code 0: no step has failed; there can be warnings. 1: a step failed. 2: wrong usage.",
		Example: "  mesh-agent troubleshoot\n" +
			"  mesh-agent troubleshoot c2 --cluster-name east --cluster-id 1\n" +
			"  mesh-agent troubleshoot --include-local --kvstore-opt etcd.config=/etc/mesh/own.yaml -o json",
		RunE: func(cmd *cobra.Command, names []string) error {
			cfg, err := c.ResolveFromAgent(cmd, s, flags...)
			if err != nil {
				return err
			}
			if err := s.Check(config.OwnFlags()...); err != nil {
				return err
			}
			targets, err := allTargets(cfg, s, names, local)
			if err != nil {
				return err
			}
			o := c.Troubleshooting
			o.Own = cfg.Own
			command.Progress(cmd.Context()).Say("Checking %s", printer.Count(len(targets), "cluster"))
			found := newTroubles(cfg.ClustermeshConfig, troubleshoot.All(cmd.Context(), targets, o))
			if err := cmd.Context().Err(); err != nil {
				return err
			}
			return exit.Verdict(c.Answer(cmd, format, found, found.page), false, found.Failed > 0)
		},
	}
	s.Register(cmd.Flags(), flags...)
	cmd.Flags().BoolVar(&local, "include-local", false, "also check the own cluster's kvstore (--kvstore-opt)")
	cmd.Flags().VarP(format, "output", "o", "output format")
	names := target.CompleteClientFile(c, s)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		offered, directive := names(cmd, args, begun)
		return slices.DeleteFunc(offered, func(name string) bool { return slices.Contains(args, name) }), directive
	}
	return cmd
}

// allTargets returns the clusters of these names, and the own one if local is true. When only the own one is checked,
// the mesh directory may be missing: the agent would wait for it.
func allTargets(cfg config.Config, s *config.Settings, names []string, local bool) ([]troubleshoot.Target, error) {
	targets, err := remoteTargets(cfg, names)
	if err != nil && !(local && len(names) == 0 && errors.Is(err, fs.ErrNotExist)) || !local {
		return targets, err
	}
	own, err := localTarget(cfg, s)
	return append(targets, own), err
}

// remoteTargets returns the clusters of the mesh directory with these names; without names, all of them. The own
// cluster is included only when it is named.
func remoteTargets(cfg config.Config, names []string) ([]troubleshoot.Target, error) {
	files, err := target.ClientFiles(cfg.ClustermeshConfig)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		names = slices.SortedFunc(maps.Keys(files), natural.Compare)
		names = slices.DeleteFunc(names, func(name string) bool { return name == cfg.ClusterName })
	}
	var targets []troubleshoot.Target
	for _, name := range names {
		file, ok := files[name]
		if !ok {
			return nil, target.NoClientFile(cfg.ClustermeshConfig, name, files)
		}
		if t := (troubleshoot.Target{Cluster: name, Path: file.Path}); !slices.ContainsFunc(targets, func(other troubleshoot.Target) bool { return other.Path == t.Path }) {
			targets = append(targets, t)
		}
	}
	return targets, nil
}

func localTarget(cfg config.Config, s *config.Settings) (troubleshoot.Target, error) {
	if err := s.Check(config.KVStoreFlag); err != nil {
		return troubleshoot.Target{}, err
	}
	o := cfg.KVStoreOpt
	if !o.HasLocal() {
		return troubleshoot.Target{}, exit.Usagef("--include-local: which kvstore? Give --kvstore-opt etcd.config=FILE or etcd.address=URL")
	}
	return troubleshoot.Target{Cluster: cfg.ClusterName, Local: true, Path: o.ConfigPath, Addresses: o.Addresses}, nil
}

func newTroubles(dir string, reports []troubleshoot.Report) *troubles {
	t := &troubles{Directory: dir, Clusters: reports}
	for _, r := range reports {
		switch r.State {
		case troubleshoot.Failed:
			t.Failed++
		case troubleshoot.Warning:
			t.Warnings++
		case troubleshoot.OK, troubleshoot.Skipped:
		}
	}
	return t
}

// page writes a block for each configuration, and at the end the verdict.
func (t *troubles) page(p *printer.Page) {
	if len(t.Clusters) == 0 {
		p.Line("No client file in %s: there is nothing to check. 'mesh-agent config check' shows ignored files.", t.Directory)
		return
	}
	p.Line("%s of %s", printer.Count(len(t.Clusters), "configuration"), t.Directory)
	for _, r := range t.Clusters {
		p.Section("%s", reportName(r))
		pageSteps(p, r.Steps)
	}
	p.Blank()
	p.Line("%s", t.verdict())
}

// pageSteps writes a line for each step; the steps of an endpoint are below its URL.
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
			p.AdviceItem(indent+"    ", "%s", f.Remedy)
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

func reportName(r troubleshoot.Report) string {
	if r.Local {
		return "local kvstore of " + r.Name
	}
	return r.Name
}

// verdict returns the summary: the failures, or the warnings when there are none, with their steps.
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

// those returns the names of the configurations in a state, with their steps in it.
func (t *troubles) those(state troubleshoot.State) string {
	var texts []string
	for _, r := range t.Clusters {
		if r.State == state {
			texts = append(texts, fmt.Sprintf("%s (%s)", reportName(r), strings.Join(r.In(state), ", ")))
		}
	}
	return printer.Some(texts, 10)
}
