package identity

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
	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/cli/target"
	"github.com/mesh-agent/mesh-agent/internal/own/identity"
	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/crdbackend"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/doublewrite"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/kvbackend"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

type compared struct {
	Primary     string       `json:"primary"`
	Secondary   string       `json:"secondary"`
	Copied      int          `json:"copied"`
	Alike       int          `json:"alike"`
	Differences []difference `json:"differences"`
}

type difference struct {
	Labels    map[string]string `json:"labels"`
	Primary   []uint64          `json:"primary"` // empty when it is missing there
	Secondary []uint64          `json:"secondary"`
	text      string
}

// betweenLooks is the time between two comparisons: an identity that is being written differs only in the first one.
const betweenLooks = time.Second

func identityCompareCommand(c *command.Env, k *target.Choice) *cobra.Command {
	var fill, back bool
	format := printer.NewFormat(printer.Text, printer.JSON, printer.YAML)
	cmd := &cobra.Command{
		Use:   "compare [PREFIX]",
		Short: "Compare the identities in two places, during a migration",
		Long: "Compare the identities in the own cluster's kvstore (the primary place) with those in a secondary place, while\n" +
			"writers write to both. The secondary place is the Kubernetes API (CiliumIdentities; --kubernetes, --kubeconfig), or\n" +
			"another PREFIX of the kvstore. If there are no differences, agents can read from the secondary place. The command\n" +
			"reads each difference twice, because writers work at the same time. With --copy it first copies the identities that\n" +
			"the secondary place does not have, with their numbers. With --copy-back it copies those that the primary place does\n" +
			"not have.\n\n" +
			"Exit code 0: no differences. 1: differences. 2: wrong usage, or one of the places does not answer.",
		Example: "  mesh-agent identity compare --kvstore-opt etcd.address=http://127.0.0.1:2379 --kubeconfig admin.conf --copy\n" +
			"  mesh-agent identity compare --kvstore-opt etcd.address=http://127.0.0.1:2379 cilium/state/identities/v2",
		Args: command.Arguments(0, 1, "one PREFIX, or none for the Kubernetes API"),
		RunE: writing(c, k, func(cmd *cobra.Command, args []string, i *identities) error {
			sides, err := i.sides(args)
			if err != nil {
				return err
			}
			done, err := sides.compare(cmd.Context(), fill, back)
			if err != nil {
				return err
			}
			return exit.Verdict(c.Answer(cmd, format, done, done.page), false, len(done.Differences) > 0)
		}),
	}
	cmd.Flags().BoolVar(&fill, "copy", false, "copy the missing identities to the secondary place")
	cmd.Flags().BoolVar(&back, "copy-back", false, "copy the missing identities to the primary place, to undo a migration")
	return command.WithOutput(cmd, format)
}

type places struct {
	sides [2]allocator.Backend
	names [2]string
}

func (i *identities) sides(args []string) (*places, error) {
	p := &places{names: [2]string{string(i.place.Paths), "the Kubernetes API"}}
	var err error
	if p.sides[0], err = i.below(i.place.Paths); err != nil {
		return nil, err
	}
	if len(args) == 0 {
		if !i.Settings.Local.FromKubernetes() {
			return nil, exit.Usagef("compare with what? Give --kubernetes (in a pod) or --kubeconfig=FILE for the CiliumIdentities of the Kubernetes API, or another PREFIX of the kvstore")
		}
		p.sides[1], err = i.inKubernetes()
		return p, err
	}
	other := wire.AllocationPaths(strings.TrimSuffix(args[0], "/"))
	switch {
	case other == "":
		return nil, exit.Usagef("the PREFIX is empty: 'cilium/' is where the keys are")
	case other == i.place.Paths:
		return nil, exit.Usagef("%s is where the identities are: give another prefix", other)
	}
	p.names[1] = string(other)
	p.sides[1], err = i.below(other)
	return p, err
}

func (i *identities) below(paths wire.AllocationPaths) (allocator.Backend, error) {
	return kvbackend.New(i.client, kvbackend.Config{Paths: paths, Node: "compare", Keys: identity.Key{}})
}

func (i *identities) inKubernetes() (allocator.Backend, error) {
	client, err := i.Settings.Local.Client()
	if err != nil {
		return nil, exit.UsageError{Err: err}
	}
	return crdbackend.New(client, crdbackend.Config{
		Namespace: i.Settings.Allocation.Namespace, Node: "compare", Keys: identity.Key{}, TTL: i.Settings.KVStore.LeaseTTL,
	})
}

func (p *places) compare(ctx context.Context, fill, back bool) (*compared, error) {
	done := &compared{Primary: p.names[0], Secondary: p.names[1], Differences: []difference{}}
	sides := p.sides
	if crd, is := sides[1].(*crdbackend.Backend); is {
		if err := crd.Check(ctx); err != nil {
			return nil, err
		}
	}
	for i, wanted := range []bool{fill, back} {
		if !wanted {
			continue
		}
		n, err := doublewrite.Copy(ctx, sides[i], sides[1-i])
		if err != nil {
			return nil, err
		}
		done.Copied += n
	}
	first, _, err := doublewrite.Compare(ctx, sides[0], sides[1])
	if err == nil && len(first) > 0 {
		err = waiting.Sleep(ctx, betweenLooks)
	}
	second, alike, err2 := doublewrite.Compare(ctx, sides[0], sides[1])
	if err = errors.Join(err, err2); err != nil {
		return nil, err
	}
	done.Alike = alike
	for _, d := range second {
		if slices.ContainsFunc(first, func(o doublewrite.Difference) bool { return o.Key == d.Key }) {
			done.Differences = append(done.Differences, difference{
				wire.ParseLabels(d.Key).Map(), append([]uint64{}, d.Primary...), append([]uint64{}, d.Secondary...), d.String(),
			})
		}
	}
	return done, nil
}

func (done *compared) page(p *printer.Page) {
	p.Line("primary %s, secondary %s: %d equal, %s", done.Primary, done.Secondary, done.Alike,
		printer.Painted{Text: fmt.Sprintf("%d different", len(done.Differences)), Color: printer.WellColor(len(done.Differences) == 0)})
	if done.Copied > 0 {
		p.Line("%s copied.", printer.Counted(done.Copied, "identity was", "identities were"))
	}
	for _, d := range done.Differences {
		p.Line("  %s", d.text)
	}
}
