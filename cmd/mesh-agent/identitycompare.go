package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/internal/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/doublewrite"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/kvbackend"
	"github.com/mesh-agent/mesh-agent/pkg/identity"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// compared is what differs between two places for identities.
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

// betweenLooks is the time between two comparisons: what is being written at
// the moment differs once.
const betweenLooks = time.Second

func (c *cli) identityCompareCommand(k *kvChoice) *cobra.Command {
	var fill bool
	format := printer.NewFormat(printer.Text, printer.JSON, printer.YAML)
	cmd := &cobra.Command{
		Use:   "compare PREFIX",
		Short: "Compare the identities with those below another prefix, during a migration",
		Long: "Compare the identities of the own cluster with those below another prefix of its kvstore, while writers write to\n" +
			"both. When nothing differs, it is safe to read from there. What differs is looked at twice, since writers work\n" +
			"meanwhile. With --copy, what the other prefix has not is copied there first, under its number.\n\n" +
			"Exit code 0: nothing differs. 1: something does. 2: wrong usage, or the kvstore does not answer.",
		Example: "  mesh-agent identity compare --kvstore-opt etcd.address=http://127.0.0.1:2379 cilium/state/identities/v2",
		Args:    onePrefix,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := k.local(); err != nil {
				return err
			}
			i, err := c.identities(cmd, k)
			if err != nil {
				return err
			}
			defer i.client.Close()
			done, err := i.compare(cmd.Context(), wire.AllocationPaths(strings.TrimSuffix(args[0], "/")), fill)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if err := answer(out, printer.StyleFor(out, c.getenv), format, done, done.page); err != nil {
				return err
			}
			return verdict(false, len(done.Differences) > 0)
		},
	}
	cmd.Flags().BoolVar(&fill, "copy", false, "copy to the other prefix what it has not")
	cmd.Flags().VarP(format, "output", "o", "form of the output")
	return cmd
}

func (i *identities) compare(ctx context.Context, other wire.AllocationPaths, fill bool) (*compared, error) {
	if other == i.place.Paths {
		return nil, usagef("%s is where the identities are: give another prefix", other)
	}
	var sides [2]*kvbackend.Backend
	for n, paths := range []wire.AllocationPaths{i.place.Paths, other} {
		var err error
		if sides[n], err = kvbackend.New(i.client, kvbackend.Config{Paths: paths, Node: "compare", Keys: identity.Key{}}); err != nil {
			return nil, err
		}
	}
	done := &compared{Primary: string(i.place.Paths), Secondary: string(other), Differences: []difference{}}
	var err error
	if fill {
		if done.Copied, err = doublewrite.Copy(ctx, sides[0], sides[1]); err != nil {
			return nil, err
		}
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
	p.Line("primary %s, secondary %s: %d alike, %s", done.Primary, done.Secondary, done.Alike,
		printer.Painted{Text: fmt.Sprintf("%d different", len(done.Differences)), Color: wellColor(len(done.Differences) == 0)})
	if done.Copied > 0 {
		p.Line("%s copied to the secondary prefix.", counted(done.Copied, "identity was", "identities were"))
	}
	for _, d := range done.Differences {
		p.Line("  %s", d.text)
	}
}
