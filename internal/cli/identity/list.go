package identity

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/base/natural"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/cli/target"
	"github.com/mesh-agent/mesh-agent/internal/own/identity"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

type listedIdentity struct {
	ID        uint64            `json:"id"`
	Cluster   string            `json:"cluster"`
	ClusterID uint32            `json:"clusterID"`
	Labels    map[string]string `json:"labels"`
	Nodes     []string          `json:"nodes"` // the nodes that hold a reference, by address
	Revision  int64             `json:"revision"`
}

func identityListCommand(c *command.Env, k *target.Choice) *cobra.Command {
	format := printer.NewFormat(printer.Plain, printer.Wide, printer.JSON, printer.YAML)
	return command.WithOutput(&cobra.Command{
		Use:     "list",
		Short:   "List the identities with their labels and the nodes that use them",
		Example: "  mesh-agent identity list --kvstore-opt etcd.address=http://127.0.0.1:2379\n  mesh-agent identity list --cluster c2 -o json",
		Args:    command.NoArgs,
		RunE: reading(c, k, func(cmd *cobra.Command, _ []string, i *identities) error {
			contents, err := identity.Read(cmd.Context(), i.client, i.place, identity.Allocations)
			if err != nil {
				return err
			}
			items := listed(i.cluster, contents)
			return c.Answer(cmd, format, map[string]any{"items": items}, func(p *printer.Page) {
				printer.Rows(p, listedTable(format.String() == printer.Wide), items)
				if len(items) == 0 {
					command.Note(cmd.ErrOrStderr(), "No identities in "+i.Name+".")
				}
			})
		}),
	}, format)
}

func listed(c identity.Owner, contents *identity.Contents) []listedIdentity {
	nodes := contents.Users()
	items := make([]listedIdentity, 0, len(contents.Mappings))
	for _, m := range contents.Mappings {
		users := slices.Compact(slices.SortedFunc(slices.Values(nodes[m.ID]), natural.Compare))
		items = append(items, listedIdentity{
			ID: m.ID, Cluster: c.Name, ClusterID: c.ID, Labels: wire.ParseLabels(m.Key).Map(),
			Nodes: append([]string{}, users...), Revision: m.Revision,
		})
	}
	slices.SortFunc(items, func(a, b listedIdentity) int { return cmp.Compare(a.ID, b.ID) })
	return items
}

func listedTable(wide bool) printer.Table[listedIdentity] {
	nodes := func(i listedIdentity) string { return printer.Some(i.Nodes, 3) }
	if wide {
		nodes = func(i listedIdentity) string { return strings.Join(i.Nodes, ",") }
	}
	return printer.Table[listedIdentity]{
		{Title: "ID", Right: true, Text: func(i listedIdentity) string { return strconv.FormatUint(i.ID, 10) }},
		{Title: "NODES", Right: true, Text: func(i listedIdentity) string { return strconv.Itoa(len(i.Nodes)) }},
		{Title: "USED BY", Text: nodes},
		{Title: "LABELS", Text: func(i listedIdentity) string { return strings.Join(printer.SortedLabels(i.Labels), " ") }},
	}
}
