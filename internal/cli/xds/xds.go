// Package xds has commands for gRPC programs and Envoys that are xDS clients of an agent: their bootstrap file, the
// resources that they receive, and the current clients.
package xds

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/base/natural"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/cli/resource"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

// New returns the command.
func New(c *command.Env) *cobra.Command {
	resolve := resolveCommand(c)
	resolve.ValidArgsFunction = resource.CompleteService(c)
	return command.Group("xds", "Configure and inspect gRPC programs and Envoys that follow the agent by xDS", bootstrapCommand(c), clientsCommand(c), resolve)
}

func clientsCommand(c *command.Env) *cobra.Command {
	format := printer.NewFormat(printer.Plain, printer.Wide, printer.JSON, printer.YAML)
	return c.Watched(command.WithOutput(&cobra.Command{
		Use:   "clients",
		Short: "Show the clients that follow the agent, and the versions that they have confirmed or rejected",
		Long: "Show the clients that follow the agent by xDS (docs/xds.md): one line for each type of resource that a client requests.\n" +
			"CONFIRMED shows whether the client has accepted the last version. A client that has rejected a version keeps the\n" +
			"previous one.",
		Example: "  mesh-agent xds clients\n  mesh-agent xds clients -o wide",
		Args:    command.NoArgs,
		RunE: c.Asking(func(cmd *cobra.Command, _ []string, cl *client.Client) error {
			all, err := client.Get[api.XDSClients](cmd.Context(), cl, "v1", "xds", "clients")
			if err != nil {
				return err
			}
			wide := format.String() == printer.Wide
			return c.Answer(cmd, format, all, func(p *printer.Page) { write(p, *all, wide, c.Now()) })
		}),
	}, format))
}

// row is one type of resource of a client.
type row struct {
	*api.XDSClient
	follows *api.XDSFollowing // nil: it has subscribed to nothing yet
}

func write(p *printer.Page, all api.XDSClients, wide bool, now time.Time) {
	if len(all.Items) == 0 {
		p.Line("No client follows this agent.")
	} else {
		writeOpen(p, all.Items, wide, now)
	}
	if len(all.Gone) > 0 {
		p.Line("Disconnected within 10 minutes:")
		printer.Rows(p, printer.Table[api.XDSClient]{
			{Title: "CLIENT", Text: func(c api.XDSClient) string { return fmt.Sprint(c.Number) }},
			{Title: "NODE", Text: func(c api.XDSClient) string { return c.Node }},
			{Title: "PEER", Text: func(c api.XDSClient) string { return c.Peer }},
			{Title: "GONE SINCE", Text: func(c api.XDSClient) string { return printer.Moment(c.Gone, now) }},
			{Title: "NAMES", Text: func(c api.XDSClient) string { return printer.Some(namesOf(c), 2) }},
		}, all.Gone)
	}
}

// namesOf returns the names that a client has subscribed to, of all types.
func namesOf(c api.XDSClient) (names []string) {
	for _, f := range c.Follows {
		names = append(names, f.Names...)
		if f.All {
			names = append(names, "all "+f.Type)
		}
	}
	slices.SortFunc(names, natural.Compare)
	return slices.Compact(names)
}

func writeOpen(p *printer.Page, clients []api.XDSClient, wide bool, now time.Time) {
	var rows []row
	for i := range clients {
		c := &clients[i]
		for j := range c.Follows {
			rows = append(rows, row{c, &c.Follows[j]})
		}
		if len(c.Follows) == 0 {
			rows = append(rows, row{c, nil})
		}
	}
	printer.Rows(p, table(wide, now), rows)
	for _, r := range rows {
		if r.follows == nil {
			continue
		}
		if len(r.follows.WithoutBackends) > 0 {
			p.Text("%s: no backends for %s.", r.name(), printer.Some(r.follows.WithoutBackends, 5))
		}
		if r.follows.Rejected > 0 {
			p.Text("%s rejected %s, the last time %s: %s", r.name(), r.follows.Type, printer.Moment(r.follows.RejectedAt, now), r.follows.Reason)
		}
	}
}

func (r row) name() string {
	if r.Node == "" {
		return fmt.Sprintf("Client %d", r.Number)
	}
	return fmt.Sprintf("Client %d (%s)", r.Number, r.Node)
}

func table(wide bool, now time.Time) printer.Table[row] {
	of := func(text func(f *api.XDSFollowing) string) func(row) string {
		return func(r row) string {
			if r.follows == nil {
				return ""
			}
			return text(r.follows)
		}
	}
	all := printer.Table[row]{
		{Title: "CLIENT", Text: func(r row) string { return fmt.Sprint(r.Number) }},
		{Title: "NODE", Text: func(r row) string { return r.Node }},
		{Title: "PEER", Text: func(r row) string { return r.Peer }},
		{Title: "SINCE", Text: func(r row) string { return printer.Moment(&r.Since, now) }},
		{Title: "TYPE", Text: of(func(f *api.XDSFollowing) string { return f.Type })},
		{Title: "NAMES", Text: of(func(f *api.XDSFollowing) string {
			switch {
			case f.All:
				return "all"
			case wide:
				return strings.Join(f.Names, " ")
			}
			return printer.Some(f.Names, 2)
		})},
		{Title: "CONFIRMED", Text: of(confirmed)},
		{Title: "REJECTED", Text: of(func(f *api.XDSFollowing) string { return fmt.Sprint(f.Rejected) })},
	}
	if wide {
		all = append(all, printer.Table[row]{
			{Title: "PROGRAM", Text: func(r row) string { return r.Program }},
			{Title: "VARIANT", Text: func(r row) string { return r.Variant }},
			{Title: "SENT", Text: of(func(f *api.XDSFollowing) string { return f.Sent })},
		}...)
	}
	return all
}

func confirmed(f *api.XDSFollowing) string {
	switch {
	case f.Sent == "":
		return "nothing sent"
	case f.Sent == f.Confirmed:
		return "yes"
	case f.Confirmed == "":
		return "no"
	}
	return "older"
}
