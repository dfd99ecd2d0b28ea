package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

// description is one object with what led to it. Programs get it as it is.
type description interface {
	page(p *printer.Page, now time.Time)
}

func (c *cli) describeCommand() *cobra.Command {
	var query client.Query
	format := printer.NewFormat(printer.Text, printer.JSON, printer.YAML)
	cmd := &cobra.Command{
		Use:   "describe RESOURCE NAME",
		Short: "Show one object with everything that led to it",
		Long: "Show one object with everything that led to it: where it comes from, how fresh that is, what belongs to it and\n" +
			"what disagrees with it. The parts are asked for one after the other, so they may be some milliseconds apart.\n\n" +
			"RESOURCE, in the singular or the plural, and the form of NAME:\n" + resourceHelp(),
		Example:           "  mesh-agent describe service default/web\n  mesh-agent describe ip 10.0.1.5 -o yaml",
		Args:              arguments(2, 2, "RESOURCE NAME"),
		ValidArgsFunction: c.completeObject,
		RunE: func(cmd *cobra.Command, args []string) error {
			res, r, err := c.request(cmd, args, query, format)
			if err != nil {
				return err
			}
			defer r.client.Close()
			return res.describeOne(cmd.Context(), r)
		},
	}
	cmd.Flags().StringVarP(&query.Cluster, "cluster", "c", "", "the cluster of a node or an export that is given without it")
	cmd.Flags().StringVarP(&query.Namespace, "namespace", "n", "", "the namespace of a service or an export that is given without it")
	cmd.Flags().VarP(format, "output", "o", "form of the output")
	return cmd
}

func (res resource[T]) describeOne(ctx context.Context, r request) error {
	v, err := res.fetch(ctx, r)
	if isNotFound(err) {
		return res.describeNothing(ctx, r, err)
	}
	if err != nil {
		return err
	}
	d, err := res.describe(ctx, r.client, v)
	if err != nil {
		return err
	}
	return answer(r.out, r.style, r.format, d, func(p *printer.Page) { d.page(p, time.Now()) })
}

// describeNothing says why there is no such object, where that can be said, and
// returns the error that it is not there.
func (res resource[T]) describeNothing(ctx context.Context, r request, missing error) error {
	if !res.explained {
		return missing
	}
	x, err := why(ctx, r.client, res.plural, res.parts(r.name, &r.query)...)
	if err != nil {
		return missing
	}
	d := &nothing{x}
	to := r.err // there is no object to show, but for a program that wants to know why
	if r.format.Structured() {
		to = r.out
	}
	if err := answer(to, r.style, r.format, d, func(p *printer.Page) { d.page(p, time.Now()) }); err != nil {
		return err
	}
	return missing
}

// few is how many examples a description shows of what there may be a lot of.
const few = 5

// collect reads a list, or at most this many items of it; cut tells whether
// there are more. The result is never nil.
func collect[T any](ctx context.Context, cl *client.Client, resource string, q client.Query, most int) (items []T, cut bool, err error) {
	q.Limit = most
	l, err := client.List[T](ctx, cl, resource, q)
	if err != nil {
		return nil, false, err
	}
	items = []T{}
	for v, err := range l.All(ctx) {
		if err != nil {
			return nil, false, err
		}
		items = append(items, v)
	}
	return items, l.Next() != "", nil
}

// all reads a list that is bounded by what it holds.
func all[T any](ctx context.Context, cl *client.Client, resource string, q client.Query) ([]T, error) {
	items, _, err := collect[T](ctx, cl, resource, q, 0)
	return items, err
}

// mostEvents is how many events of a cluster a description shows.
const mostEvents = 10

// recentEvents are the latest events of a cluster, the newest first.
func recentEvents(ctx context.Context, cl *client.Client, cluster string) ([]api.Event, error) {
	events, err := all[api.Event](ctx, cl, "events", client.Query{Cluster: cluster})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(events, func(a, b api.Event) int { return cmp.Compare(b.ID, a.ID) })
	return events[:min(len(events), mostEvents)], nil
}

// clusterOf finds a cluster; nil when there is none of that name.
func clusterOf(ctx context.Context, cl *client.Client, name string) (*api.Cluster, error) {
	if name == "" {
		return nil, nil
	}
	found, err := all[api.Cluster](ctx, cl, "clusters", client.Query{Cluster: name})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// clusterLine says how a cluster is, with why it is not well.
func clusterLine(c *api.Cluster) []string {
	if c == nil {
		return nil
	}
	line := []string{fmt.Sprintf("%s (ID %d), %s, %s", c.Name, c.ID, c.State, freshnessText(*c))}
	if c.Message != "" {
		line = append(line, coded(c.Code, c.Message))
	}
	return line
}

// present drops the fields that have nothing to say.
func present(fields ...printer.Field) []printer.Field {
	return slices.DeleteFunc(fields, func(f printer.Field) bool { return strings.Join(f.Texts, "") == "" })
}

func pageConflicts(p *printer.Page, conflicts []api.Conflict) {
	if len(conflicts) == 0 {
		return
	}
	atLeast := ""
	if len(conflicts) >= api.MaxLimit { // a page, which is all that was asked for
		atLeast = "at least "
	}
	p.Section("Conflicts (%s%d)", atLeast, len(conflicts))
	for _, c := range conflicts[:min(len(conflicts), few)] {
		p.Item(c.Kind+"  ", "%s", c.Message)
	}
	if n := len(conflicts) - few; n > 0 {
		p.Line("… and %s%d more: 'mesh-agent get conflicts' lists them", atLeast, n)
	}
	p.End()
}

func pageEvents(p *printer.Page, events []api.Event, now time.Time) {
	if len(events) == 0 {
		return
	}
	p.Section("Recent events")
	for _, e := range events {
		p.Item(fmt.Sprintf("%7s ago  ", printer.Duration(now.Sub(e.Time))), "%s: %s", coded(e.Code, e.Kind), e.Message)
	}
	p.End()
}
