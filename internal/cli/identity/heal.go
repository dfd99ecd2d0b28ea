package identity

import (
	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/cli/target"
	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/pkg/identity"
)

type healed struct {
	Applied    bool                  `json:"applied"`
	Duplicates []identity.Duplicates `json:"twins"`
}

func identityHealCommand(c *command.Env, k *target.Choice) *cobra.Command {
	var apply bool
	format := printer.NewFormat(printer.Text, printer.JSON, printer.YAML)
	cmd := &cobra.Command{
		Use:   "heal",
		Short: "Give labels one number again that nodes use under several (MESH-4211)",
		Long: "Give labels one number again that nodes use under several, as they may after a node was cut off for longer than its\n" +
			"leases. The number that most nodes use is kept, of several the newest one; the references to the others are withdrawn.\n" +
			"An agent of ours whose reference is gone takes the number that is kept when it refreshes its keys, within its\n" +
			"--kvstore-periodic-sync, and publishes its pods with it. An agent of Cilium puts its reference back: restart it.\n\n" +
			"Nothing is written without --apply: it shows which number would be kept.",
		Example: "  mesh-agent identity heal --kvstore-opt etcd.address=http://127.0.0.1:2379 --cluster-name east --cluster-id 1 --apply",
		Args:    command.NoArgs,
		RunE: writing(c, k, func(cmd *cobra.Command, _ []string, i *identities) error {
			contents, err := identity.Read(cmd.Context(), i.client, i.place, identity.Allocations)
			if err != nil {
				return err
			}
			done := &healed{Applied: apply, Duplicates: []identity.Duplicates{}}
			for _, t := range identity.FindDuplicates(contents) {
				if apply {
					now, err := identity.Heal(cmd.Context(), i.client, i.place.Paths, t.Labels)
					if err != nil {
						return err
					}
					if now == nil {
						continue
					}
					t = *now
				}
				done.Duplicates = append(done.Duplicates, t)
			}
			return c.Answer(cmd, format, done, done.page)
		}),
	}
	cmd.Flags().BoolVar(&apply, "apply", false, "withdraw the references; else only show which")
	cmd.Flags().VarP(format, "output", "o", "form of the output")
	return cmd
}

func (done *healed) page(p *printer.Page) {
	if len(done.Duplicates) == 0 {
		p.Line("No labels are in use under several numbers.")
		return
	}
	would := "would be "
	if done.Applied {
		would = ""
	}
	for _, t := range done.Duplicates {
		p.Line("%s", t.Labels)
		p.Line("  %skept: %s", would, t.Keep.String())
		for _, u := range t.Withdraw {
			p.Line("  %swithdrawn: %s", would, u.String())
		}
	}
	if !done.Applied {
		p.Advice("%s", "give --apply to do it")
	}
}
