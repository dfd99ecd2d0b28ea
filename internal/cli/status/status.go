// Package status shows the health of the mesh on one page, and waits for it.
package status

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/cli/clustertext"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/cli/resource"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

type statusOptions struct {
	cluster string // empty: all
	wait    bool
	goal    *printer.Format
	timeout time.Duration
	format  *printer.Format
	all     bool // show a line for each cluster, also on a terminal
	failOn  failures
}

// The states of every cluster that status can wait for.
const (
	GoalReady  = "ready"  // every cluster is ready
	GoalSynced = "synced" // every cluster was listed completely once
	GoalFresh  = "fresh"  // every cluster is ready, and its data is confirmed as current
)

// New returns the command.
func New(c *command.Env) *cobra.Command {
	o := statusOptions{
		failOn: allFailures(),
		goal:   printer.NewFormat(GoalFresh, GoalReady, GoalSynced),
		format: printer.NewFormat(printer.Text, printer.Wide, printer.JSON, printer.YAML),
	}
	cmd := &cobra.Command{
		Use:   "status [CLUSTER]",
		Short: "Show the health of the mesh",
		Long: "Show the health of the mesh: one line for each cluster, problems first, then the problems with their remedies. On a\n" +
			"terminal, a large mesh is cut to a screen: --all or -o wide shows everything. With CLUSTER, everything about one.\n\n" +
			"Exit code 0: every cluster is ready and fresh, there are no conflicts and no refused entries, or --wait has succeeded.\n" +
			"1: otherwise; --fail-on chooses what counts.\n" +
			"2: the agent cannot be reached.",
		Example: "  mesh-agent status\n  mesh-agent status --watch\n  mesh-agent status --wait --for=ready --timeout 2m",
		Args:    command.Arguments(0, 1, "at most one CLUSTER"),

		ValidArgsFunction: resource.CompleteArgument(c),
		RunE: c.Asking(func(cmd *cobra.Command, args []string, cl *client.Client) error {
			if len(args) == 1 {
				o.cluster = args[0]
			}
			return status(c, cmd, cl, &o)
		}),
	}
	f := cmd.Flags()
	f.BoolVar(&o.wait, "wait", false, "wait until every cluster, and the local kvstore, is in the state of --for")
	f.Var(o.goal, "for", "state to wait for")
	f.Var(&o.failOn, "fail-on", "reasons for exit code 1, without --wait: conflicts, refusals, degraded, or none")
	_ = cmd.RegisterFlagCompletionFunc("fail-on", command.Complete(func(*cobra.Command, []string) []string { return append(allFailures(), failOnNone) })) // the flag is there
	f.DurationVar(&o.timeout, "timeout", 5*time.Minute, "maximum time to wait")
	f.BoolVar(&o.all, "all", false, "show a line for each cluster, also on a terminal")
	f.VarP(o.format, "output", "o", "output format")
	return c.Watched(cmd)
}

func status(c *command.Env, cmd *cobra.Command, cl *client.Client, o *statusOptions) (err error) {
	for _, name := range []string{"for", "timeout"} {
		if cmd.Flags().Changed(name) && !o.wait {
			return exit.Usagef("--%s needs --wait", name)
		}
	}
	if o.wait && cmd.Flags().Changed("watch") {
		return exit.Usagef("give either --wait or --watch")
	}
	ctx := cmd.Context()
	var st *api.Status
	var late error
	if o.wait {
		st, late = wait(c, ctx, cmd, cl, o)
	} else {
		st, err = cl.Status(ctx)
	}
	if err != nil {
		return err
	}
	if st == nil {
		return late
	}
	if o.cluster != "" && ClusterNamed(st.Clusters, o.cluster) == nil {
		return NoCluster(st.Clusters, o.cluster)
	}
	var found []string
	if !o.wait {
		found = o.failOn.found(st, o.cluster)
	}
	if err := showStatus(c, cmd, cl, o, st, found); err != nil {
		return err
	}
	switch {
	case late != nil:
		return late
	case len(found) > 0:
		return exit.ErrUnwell
	}
	return nil
}

// showStatus prints the status, or that of one cluster, and in text output also the reason for exit code 1.
func showStatus(c *command.Env, cmd *cobra.Command, cl *client.Client, o *statusOptions, st *api.Status, found []string) error {
	if o.cluster != "" {
		cluster := ClusterNamed(st.Clusters, o.cluster)
		return c.Answer(cmd, o.format, cluster, func(p *printer.Page) {
			clustertext.WritePage(p, cluster, st.Impact.OfCluster(o.cluster), time.Now())
			writeExit(p, found)
		})
	}
	out := cmd.OutOrStdout()
	if o.format.Structured() {
		return o.format.Object(out, st)
	}
	conflicts, err := firstConflicts(cmd.Context(), cl, st)
	if err != nil {
		return err
	}
	style := c.Style(cmd)
	style.Wide = o.format.String() == printer.Wide
	return Write(out, style, Page{Status: st, Now: time.Now(), all: o.all, conflicts: conflicts, exit: found})
}

// ClusterNamed returns the cluster of this name; nil for none.
func ClusterNamed(clusters []api.Cluster, name string) *api.Cluster {
	for i := range clusters {
		if clusters[i].Name == name {
			return &clusters[i]
		}
	}
	return nil
}

// NoCluster returns the error that there is no cluster of this name, with the existing ones.
func NoCluster(clusters []api.Cluster, name string) error {
	var names []string
	for _, c := range clusters {
		names = append(names, c.Name)
	}
	if len(names) == 0 {
		return fmt.Errorf("there is no cluster %q: the agent knows no clusters", name)
	}
	return fmt.Errorf("there is no cluster %q; there are: %s", name, printer.Some(names, 10))
}

func wellOn(st *api.Status, cluster string) bool {
	if cluster != "" {
		return ClusterNamed(st.Clusters, cluster).Well()
	}
	return st.State == api.StateReady && !slices.ContainsFunc(st.Clusters, func(c api.Cluster) bool { return !c.Well() })
}

// wait requests the status until the goal is reached. It returns the last status, nil if there was none, and the
// error why the goal was not reached.
func wait(c *command.Env, ctx context.Context, cmd *cobra.Command, cl *client.Client, o *statusOptions) (*api.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	line := printer.NewLine(cmd.ErrOrStderr())
	defer line.End()
	tick := time.NewTicker(c.Poll)
	defer tick.Stop()
	var last *api.Status
	missing := "the first answer"
	var unreachable error
	for {
		st, err := cl.Status(ctx)
		switch {
		case err == nil:
			last, unreachable = st, nil
			if missing = missingFor(st, o.goal.String(), o.cluster); missing == "" {
				return last, nil
			}
		case errors.Is(err, client.ErrUnreachable):
			unreachable, missing = err, "the agent"
		case ctx.Err() == nil:
			return nil, err
		}
		line.Show("Waiting for " + missing)
		select {
		case <-ctx.Done():
		case <-tick.C:
			continue
		}
		if unreachable != nil {
			return nil, fmt.Errorf("stopped after %s: %w", o.timeout, unreachable)
		}
		if last == nil {
			return nil, fmt.Errorf("stopped after %s: %w: it has not answered once", o.timeout, client.ErrUnreachable)
		}
		return last, fmt.Errorf("stopped after %s waiting for %s", o.timeout, missing)
	}
}

// missingFor returns the missing conditions of the goal; empty when it is reached.
func missingFor(st *api.Status, goal, cluster string) string {
	clusters := st.Clusters
	if cluster != "" {
		one := ClusterNamed(st.Clusters, cluster)
		if one == nil {
			return fmt.Sprintf("a cluster %s", cluster)
		}
		clusters = []api.Cluster{*one}
	}
	var late, missing []string
	for i := range clusters {
		if clusters[i].State == "removing" {
			continue // it was removed from the directory
		}
		if !Reached(&clusters[i], goal) {
			late = append(late, fmt.Sprintf("%s (%s)", clusters[i].Name, stateText(&clusters[i])))
		}
	}
	if len(late) > 0 {
		missing = append(missing, fmt.Sprintf("%d of %s to be %s: %s", len(late), printer.Count(len(clusters), "cluster"), goal, printer.Some(late, 5)))
	}
	if own := st.OwnCluster; own != nil && cluster == "" && !Reached(own, goal) {
		missing = append(missing, fmt.Sprintf("the local kvstore to be %s (%s)", goal, stateText(own)))
	}
	if len(missing) == 0 && cluster == "" && !st.Ready {
		return "the agent to be ready"
	}
	return strings.Join(missing, " and ")
}

// Reached reports whether a cluster has reached a goal.
func Reached(c *api.Cluster, goal string) bool {
	switch goal {
	case GoalReady:
		return c.Ready
	case GoalSynced:
		return c.Complete()
	default:
		return c.Well()
	}
}

func stateText(c *api.Cluster) string {
	if c.State == "ready" && !c.Fresh() {
		return "not fresh"
	}
	if c.State == "ready" && !c.Kept() {
		return "its service backends are not used as usual yet"
	}
	return c.State
}
