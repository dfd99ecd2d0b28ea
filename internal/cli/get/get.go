// Package get lists and watches what an agent knows.
package get

import (
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/cli/resource"
	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

// New returns the command.
func New(c *command.Env) *cobra.Command {
	var (
		query  client.Query
		watch  bool
		format = printer.NewFormat(printer.Plain, printer.Wide, printer.JSON, printer.YAML, printer.Name)
	)
	cmd := &cobra.Command{
		Use:   "get RESOURCE [NAME]",
		Short: "List objects of the mesh, or show one object",
		Long: "List objects of the mesh, or show one object.\n\nRESOURCE, in the singular or the plural, and the NAME of one of them:\n" +
			resource.Help(),
		Example: "  mesh-agent get clusters\n  mesh-agent get nodes -c c2 -o wide\n  mesh-agent get services default/web -o yaml\n" +
			"  mesh-agent get ips 10.0.1.5\n  mesh-agent get ips -l app=web -w",
		Args:              command.Arguments(1, 2, "RESOURCE [NAME]"),
		ValidArgsFunction: resource.CompleteObject(c),
		RunE: func(cmd *cobra.Command, args []string) error {
			res, err := resource.Find(args[0])
			if err != nil {
				return err
			}
			r, err := resource.NewRequest(c, cmd, strings.Join(args[1:], ""), query, format)
			if err != nil {
				return err
			}
			defer r.Client.Close()
			r.Watch = watch
			r.Style.Wide = format.String() == printer.Wide
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return res.Get(ctx, r)
		},
	}
	cmd.Flags().StringVarP(&query.Cluster, "cluster", "c", "", "only objects of this cluster")
	cmd.Flags().StringVarP(&query.Namespace, "namespace", "n", "", "only objects in this namespace")
	cmd.Flags().StringVarP(&query.Labels, "selector", "l", "", "only objects with these labels, such as app=web,tier!=db,zone in (a,b)")
	cmd.Flags().StringVar(&query.Identity, "identity", "", "only objects of this identity")
	cmd.Flags().StringVar(&query.Prefix, "prefix", "", "only objects in this network")
	cmd.Flags().StringVar(&query.Kind, "kind", "", "only conflicts or events of this kind")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "then show each change, until you interrupt the command")
	cmd.Flags().VarP(format, "output", "o", "output format")
	_ = cmd.RegisterFlagCompletionFunc("cluster", resource.CompleteCluster(c)) // the flag is there
	return cmd
}
