// Package get lists and watches objects of an agent.
package get

import (
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/cli/resource"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

// New returns the command.
func New(c *command.Env) *cobra.Command {
	var (
		query     client.Query
		watch     bool
		asKubectl kubectl
		format    = printer.NewFormat(printer.Plain, printer.Wide, printer.JSON, printer.YAML, printer.Name, printer.JSONPath, printer.CustomColumns)
	)
	cmd := &cobra.Command{
		Use:   "get RESOURCE [NAME]",
		Short: "List objects of the mesh, or show one object",
		Long: "List objects of the mesh, or show one object.\n\nRESOURCE, in the singular or the plural, and the NAME of one of them:\n" +
			resource.Help(),
		Example: "  mesh-agent get clusters\n  mesh-agent get nodes -c c2 -o wide\n  mesh-agent get services default/web -o yaml\n" +
			"  mesh-agent get ips 10.0.1.5\n  mesh-agent get ips --contains web-0\n  mesh-agent get ips -l app=web -w",
		Args:              command.Arguments(1, 2, "RESOURCE [NAME]"),
		ValidArgsFunction: resource.CompleteObject(c),
		RunE: func(cmd *cobra.Command, args []string) error {
			res, err := resource.Find(args[0])
			if err != nil {
				return err
			}
			name := strings.Join(args[1:], "")
			sortBy, err := asKubectl.check(query.Namespace, name, format, watch)
			if err != nil {
				return err
			}
			r, err := resource.NewRequest(c, cmd, name, query, format)
			if err != nil {
				return err
			}
			defer r.Client.Close()
			if r.Since, err = asKubectl.after(time.Now()); err != nil {
				return err
			}
			r.Watch, r.SortBy, r.Style.NoHeader = watch, sortBy, asKubectl.noHeaders
			cut := false
			if r.Style.Wide = format.String() == printer.Wide; r.Style.Wide {
				r.Style.Width = 0
			}
			r.Style.Cut = &cut
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			if err := res.Get(ctx, r); err != nil || !cut {
				return err
			}
			_, err = fmt.Fprintln(r.Err, "Cut to the width of the terminal: -o wide shows everything.")
			return err
		},
	}
	cmd.Flags().StringVarP(&query.Cluster, "cluster", "c", "", "only objects of this cluster")
	cmd.Flags().StringVarP(&query.Namespace, "namespace", "n", "", "only objects in this namespace")
	cmd.Flags().StringVarP(&query.Labels, "selector", "l", "", "only objects with these labels, such as app=web,tier!=db,zone in (a,b)")
	cmd.Flags().StringVar(&query.Identity, "identity", "", "only objects of this identity")
	cmd.Flags().StringVar(&query.Prefix, "prefix", "", "only objects in this network")
	cmd.Flags().StringVar(&query.Kind, "kind", "", "only conflicts or events of this kind")
	cmd.Flags().StringVar(&query.Contains, "contains", "", "only objects with this text in their name, or in the name of their pod")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "then show each change, until you interrupt the command")
	cmd.Flags().VarP(format, "output", "o", "output format, such as jsonpath={.items[*].name}")
	cmd.Flags().BoolVarP(&asKubectl.all, "all-namespaces", "A", false, "objects of all namespaces, which is the default")
	cmd.Flags().BoolVar(&asKubectl.noHeaders, "no-headers", false, "leave out the titles of the columns")
	cmd.Flags().StringVar(&asKubectl.sortBy, "sort-by", "", "order of the list, as the path of a field in -o json, such as .cluster")
	cmd.Flags().DurationVar(&asKubectl.since, "since", 0, "only events and conflicts of this time until now, such as 10m")
	// These flags exist, so there is no error.
	_ = cmd.RegisterFlagCompletionFunc("cluster", resource.CompleteCluster(c))
	_ = cmd.RegisterFlagCompletionFunc("namespace", resource.CompleteNamespace(c))
	_ = cmd.RegisterFlagCompletionFunc("sort-by", resource.CompleteField)
	_ = cmd.RegisterFlagCompletionFunc("kind", resource.CompleteKind(c))
	return cmd
}

// kubectl are options that users know from kubectl.
type kubectl struct {
	all, noHeaders bool
	sortBy         string
	since          time.Duration
}

// after returns the time since which objects are shown; zero for all.
func (k kubectl) after(now time.Time) (time.Time, error) {
	switch {
	case k.since < 0:
		return time.Time{}, exit.Usagef("--since=%s: a time that is over is positive, such as 10m", k.since)
	case k.since == 0:
		return time.Time{}, nil
	}
	return now.Add(-k.since), nil
}

// check refuses options that exclude each other, and parses the order; nil for the agent's order.
func (k kubectl) check(namespace, name string, format *printer.Format, watch bool) (sortBy *printer.Path, err error) {
	switch {
	case k.all && namespace != "":
		return nil, exit.Usagef("-A is for all namespaces, and -n for one: give one of them")
	case watch && format.String() == printer.JSONPath:
		return nil, exit.Usagef("a watch has no -o jsonpath: use -o json")
	case k.sortBy == "":
		return nil, nil
	case watch || name != "":
		return nil, exit.Usagef("--sort-by is for a list, without a NAME and --watch")
	}
	if sortBy, err = printer.ParsePath(k.sortBy); err != nil {
		return nil, exit.Usagef("--sort-by: %w", err)
	}
	return sortBy, nil
}
