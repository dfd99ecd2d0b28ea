package identity

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/cli/explain"
	"github.com/mesh-agent/mesh-agent/internal/cli/target"
	"github.com/mesh-agent/mesh-agent/internal/own/identity"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

func identityCheckCommand(c *command.Env, k *target.Choice) *cobra.Command {
	var verbose bool
	format := printer.NewFormat(printer.Text, printer.JSON, printer.YAML)
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check the identities of a cluster: range, mappings, references, duplicate labels",
		Long: "Check the identities of a cluster: used numbers outside the range of the cluster, references without a mapping,\n" +
			"mappings without a reference, and labels with several numbers. The command also shows when the range will be full at\n" +
			"the current rate. It computes the rate from the history of the kvstore since its last compaction.\n\n" +
			"Exit code 0: no errors. 1: errors. 2: wrong usage, or the kvstore does not answer.",
		Args: command.NoArgs,
		RunE: reading(c, k, func(cmd *cobra.Command, _ []string, i *identities) error {
			if i.cached {
				return exit.Usagef("%s is the copy that a mirror keeps of it, which has no references to check; ask the cluster's own kvstore", i.Name)
			}
			contents, err := identity.Read(cmd.Context(), i.client, i.place, identity.History)
			if err != nil {
				return err
			}
			report := identity.Check(i.cluster, contents)
			page := func(p *printer.Page) { pageIdentityCheck(p, &report, verbose) }
			return exit.Verdict(c.Answer(cmd, format, report, page), false, report.Count(codes.Error) > 0)
		}),
	}
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "also show entries without a fault, such as each unused mapping")
	return command.WithOutput(cmd, format)
}

func pageIdentityCheck(p *printer.Page, r *identity.Report, verbose bool) {
	p.Line("cluster %s: %s, %s, %s", r.Cluster,
		printer.Painted{Text: printer.Count(r.Count(codes.Error), "error"), Color: printer.WellColor(r.Count(codes.Error) == 0)},
		printer.Count(r.Count(codes.Warning), "warning"), printer.Count(r.Count(codes.Info), "note"))
	p.Blank()
	p.Fields(
		printer.F("Range", fmt.Sprintf("%d to %d", r.First, r.Last)),
		printer.F("Identities", fmt.Sprintf("%d, %d of them in use by %s", r.Mappings, r.InUse, printer.Count(r.References, "node reference"))),
		printer.F("Free", strconv.Itoa(r.Free)),
		printer.F("Rate", rateText(r)))
	for _, f := range r.Findings {
		if f.Severity == codes.Info && !verbose {
			continue
		}
		p.Blank()
		p.Line("%s %s: %s", printer.Painted{Text: string(f.Severity) + ":", Color: explain.SeverityColor(f.Severity)}, f.Kind, f.Subject)
		p.Text("%s [%s]", f.Message, string(f.Code))
		p.Advice("%s", f.Remedy)
	}
}

func rateText(r *identity.Report) string {
	switch {
	case r.PerDay == nil:
		return "not known: the kvstore's history has no two heartbeats a minute apart"
	case r.DaysLeft == nil:
		return "none was made in the last " + r.RateOver
	default:
		return fmt.Sprintf("%.0f a day, as seen over the last %s: the range lasts for %.0f days", *r.PerDay, r.RateOver, *r.DaysLeft)
	}
}

type healed struct {
	Applied    bool                  `json:"applied"`
	Duplicates []identity.Duplicates `json:"twins"`
}

func identityHealCommand(c *command.Env, k *target.Choice) *cobra.Command {
	var apply bool
	format := printer.NewFormat(printer.Text, printer.JSON, printer.YAML)
	cmd := &cobra.Command{
		Use:   "heal",
		Short: "Repair labels with several numbers (MESH-4211)",
		Long: "Repair labels that nodes use under several numbers. This can happen after a node had no connection for longer than\n" +
			"its leases. The command keeps the number that most nodes use; if several have equally many, the newest one. It\n" +
			"deletes the references to the other numbers. A mesh-agent without its reference takes the kept number when it\n" +
			"refreshes its keys, within its --kvstore-periodic-sync, and publishes its pods with this number. An agent of Cilium\n" +
			"writes its reference again: restart it.\n\n" +
			"Without --apply the command writes nothing, and shows the number that it would keep.",
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
	cmd.Flags().BoolVar(&apply, "apply", false, "delete the references; without it the command only shows them")
	return command.WithOutput(cmd, format)
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
