// Package describe shows one object, and why it is as it is.
package describe

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/cli/clustertext"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/cli/explain"
	"github.com/mesh-agent/mesh-agent/internal/cli/resource"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

// description is one object with the data that explains it. Structured output contains it unchanged.
type description interface {
	page(p *printer.Page, now time.Time)
}

// New returns the command.
func New(c *command.Env) *cobra.Command {
	var query client.Query
	var of connections
	format := printer.NewFormat(printer.Text, printer.JSON, printer.YAML)
	cmd := &cobra.Command{
		Use:   "describe RESOURCE NAME",
		Short: "Show one object with the evidence for it",
		Long: "Show one object with the evidence for it: its sources, their freshness, related objects and conflicts. The parts are\n" +
			"requested one after the other, so they can be some milliseconds apart.\n\n" +
			"RESOURCE, in the singular or the plural, and the form of NAME:\n" + resource.Help(),
		Example:           "  mesh-agent describe service default/web\n  mesh-agent describe service default/web --from eu-west-1a --port http\n  mesh-agent describe ip 10.0.1.5 -o yaml",
		Args:              command.Arguments(2, 2, "RESOURCE NAME"),
		ValidArgsFunction: resource.CompleteObject(c),
		RunE: func(cmd *cobra.Command, args []string) error {
			subject, err := findSubject(args[0])
			if err == nil {
				err = of.check(subject)
			}
			if err != nil {
				return err
			}
			r, err := resource.NewRequest(c, cmd, args[1], query, format)
			if err != nil {
				return err
			}
			defer r.Client.Close()
			return subject.describe(cmd.Context(), r, of)
		},
	}
	cmd.Flags().StringVarP(&query.Cluster, "cluster", "c", "", "cluster of a node or an export, if NAME does not contain it")
	cmd.Flags().StringVarP(&query.Namespace, "namespace", "n", "", "namespace of a service or an export, if NAME does not contain it")
	cmd.Flags().StringVar(&of.zone, "from", "", "service: also show the backends for a client in this zone")
	cmd.Flags().StringVar(&of.port, "port", "", "service: also show the backends for this port (a name or a number)")
	return c.Watched(command.WithOutput(cmd, format))
}

// subject is a kind of object that can be described.
type subject interface {
	Is(name string) bool
	// describe shows the object that the request names, with the data that explains it.
	describe(ctx context.Context, r resource.Request, of connections) error
}

type subjectOf[T any] struct {
	kind resource.Kind[T]
	// describeOne requests the data that belongs to an object.
	describeOne func(ctx context.Context, g *gatherer, v *T) description
}

func subjects() []subject {
	return []subject{
		subjectOf[api.Cluster]{resource.Clusters(), describeCluster},
		subjectOf[api.Node]{resource.Nodes(), describeNode},
		subjectOf[api.Service]{resource.Services(), describeService},
		subjectOf[api.ServiceExport]{resource.ServiceExports(), describeExport},
		subjectOf[api.Identity]{resource.Identities(), describeIdentity},
		subjectOf[api.IP]{resource.IPs(), describeIP},
		subjectOf[api.Conflict]{resource.Conflicts(), describeConflict},
		subjectOf[api.Event]{resource.Events(), describeEvent},
		subjectOf[api.Health]{resource.Health(), describeHealth},
	}
}

func findSubject(name string) (subject, error) {
	kind, err := resource.Find(name)
	if err != nil {
		return nil, err
	}
	return subjectAmong(subjects(), kind, name), nil
}

func subjectAmong(all []subject, kind resource.Resource, name string) subject {
	if i := slices.IndexFunc(all, func(s subject) bool { return s.Is(name) }); i >= 0 {
		return all[i]
	}
	return plain{kind}
}

// plain is the subject of a kind without a description of its own: it shows all fields of the object.
type plain struct{ resource.Resource }

func (s plain) describe(ctx context.Context, r resource.Request, _ connections) error {
	if !r.Format.Structured() {
		r.Format = printer.NewFormat(printer.YAML)
	}
	return s.Get(ctx, r)
}

func (s subjectOf[T]) Is(name string) bool { return s.kind.Is(name) }

func (s subjectOf[T]) describe(ctx context.Context, r resource.Request, of connections) error {
	v, err := s.kind.Fetch(ctx, r)
	if resource.IsNotFound(err) {
		return s.describeNothing(ctx, r, err)
	}
	if err != nil {
		return err
	}
	g := &gatherer{cl: r.Client, connections: of}
	d := s.describeOne(ctx, g, v)
	if g.err != nil {
		return g.err
	}
	return command.Answer(r.Out, r.Style, r.Format, d, func(p *printer.Page) { d.page(p, time.Now()) })
}

// describeNothing shows why there is no such object, if the agent can explain it, and returns the error that it does
// not exist.
func (s subjectOf[T]) describeNothing(ctx context.Context, r resource.Request, missing error) error {
	if !s.kind.Explained {
		return missing
	}
	g := &gatherer{cl: r.Client}
	d := &nothing{g.why(ctx, s.kind.Plural, s.kind.Parts(r.Name, &r.Query)...)}
	if g.err != nil {
		return missing
	}
	to := r.Err // there is no object for stdout, except for a program that needs the reason
	if r.Format.Structured() {
		to = r.Out
	}
	if err := command.Answer(to, r.Style, r.Format, d, func(p *printer.Page) { d.page(p, time.Now()) }); err != nil {
		return err
	}
	return missing
}

type nothing struct {
	Why *api.Explanation `json:"why"`
}

func (n *nothing) page(p *printer.Page, now time.Time) { explain.WriteWhy(p, n.Why, now) }

// gatherer requests the parts of a description one after the other. After an error it sends no more requests.
type gatherer struct {
	cl          *client.Client
	connections connections
	err         error
}

func (g *gatherer) why(ctx context.Context, plural string, parts ...string) *api.Explanation {
	return get[api.Explanation](ctx, g, append([]string{"why", plural}, parts...)...)
}

func (g *gatherer) lookup(ctx context.Context, address string) *api.Lookup {
	return get[api.Lookup](ctx, g, "lookup", address)
}

// cluster returns a cluster; nil when there is none of this name.
func (g *gatherer) cluster(ctx context.Context, name string) *api.Cluster {
	if name == "" {
		return nil
	}
	found, _ := list[api.Cluster](ctx, g, "clusters", client.Query{Cluster: name})
	if len(found) == 0 {
		return nil
	}
	return &found[0]
}

const mostEvents = 10 // of a cluster, in a description

func (g *gatherer) events(ctx context.Context, cluster string) []api.Event {
	events, _ := list[api.Event](ctx, g, "events", client.Query{Cluster: cluster})
	slices.SortFunc(events, func(a, b api.Event) int { return cmp.Compare(b.ID, a.ID) })
	return events[:min(len(events), mostEvents)]
}

func (g *gatherer) conflicts(ctx context.Context, subject string) []api.Conflict {
	found, _ := list[api.Conflict](ctx, g, "conflicts", client.Query{Name: subject})
	return found
}

func get[T any](ctx context.Context, g *gatherer, path ...string) (v *T) {
	if g.err == nil {
		v, g.err = client.Get[T](ctx, g.cl, append([]string{"v1"}, path...)...)
	}
	return v
}

// list requests objects, at most the limit of the query; cut reports whether there are more.
func list[T any](ctx context.Context, g *gatherer, plural string, q client.Query) (items []T, cut bool) {
	if g.err == nil {
		items, cut, g.err = resource.Collect[T](ctx, g.cl, plural, q)
	}
	return items, cut
}

// clusterLine returns the state of a cluster, with the reason for a problem.
func clusterLine(c *api.Cluster) []string {
	if c == nil {
		return nil
	}
	line := []string{fmt.Sprintf("%s (ID %d), %s, %s", c.Name, c.ID, c.State, clustertext.FreshnessText(*c))}
	if c.Message != "" {
		line = append(line, explain.Coded(c.Code, c.Message))
	}
	return line
}

func pageConflicts(p *printer.Page, conflicts []api.Conflict) {
	if len(conflicts) == 0 {
		return
	}
	atLeast := ""
	if len(conflicts) >= api.MaxLimit { // a full page: only one page was requested
		atLeast = "at least "
	}
	p.Section("Conflicts (%s%d)", atLeast, len(conflicts))
	for _, c := range conflicts[:min(len(conflicts), explain.Few)] {
		p.Item(c.Kind+"  ", "%s", c.Message)
	}
	if n := len(conflicts) - explain.Few; n > 0 {
		p.Line("… and %s%d more: 'mesh-agent get conflicts' lists them", atLeast, n)
	}
}

func pageEvents(p *printer.Page, events []api.Event, now time.Time) {
	if len(events) == 0 {
		return
	}
	p.Section("Recent events")
	for _, e := range events {
		p.Item(fmt.Sprintf("%7s ago  ", printer.Duration(now.Sub(e.Time))), "%s: %s", explain.Coded(e.Code, e.Kind), e.Message)
	}
}
