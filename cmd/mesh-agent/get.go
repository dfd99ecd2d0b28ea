package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

// request is what get or describe was asked for.
type request struct {
	client   *client.Client
	query    client.Query
	name     string // empty: the list
	watch    bool
	format   *printer.Format
	out, err io.Writer
	style    printer.Style
}

// request is what RESOURCE and, when it is given, NAME ask of the agent, whose
// client the caller closes.
func (c *cli) request(cmd *cobra.Command, args []string, query client.Query, format *printer.Format) (kind, request, error) {
	r := request{query: query, format: format, out: cmd.OutOrStdout(), err: cmd.ErrOrStderr()}
	r.style = printer.StyleFor(r.out, c.getenv)
	if len(args) > 1 {
		r.name = args[1]
	}
	res, err := findResource(args[0])
	if err == nil {
		r.client, err = c.connect(cmd)
	}
	return res, r, err
}

// kind is one kind of object that can be shown.
type kind interface {
	names() []string // plural, singular, then others
	get(ctx context.Context, r request) error
	// describeOne shows one object, which has a name in the request, with what
	// led to it.
	describeOne(ctx context.Context, r request) error
	// exists tells whether there is an object of this name now.
	exists(ctx context.Context, cl *client.Client, name string) (bool, error)
}

// resource is a kind whose objects are T.
type resource[T any] struct {
	plural, singular string
	others           []string
	table            printer.Table[T]
	name             func(T) string
	// form is how one is named, for people; parts splits such a name into the
	// parts of a path, and may complete it from the query.
	form  string
	parts func(name string, q *client.Query) []string
	// narrow makes the parts of a name filters of a watch; nil when one object
	// is nothing to watch.
	narrow func(parts []string, q *client.Query)
	// is tells whether the name is an object's; nil when narrow leaves no other.
	is func(name string, v T) bool
	// explained: the agent says why there is none of a name.
	explained bool
	// fades: what goes has only grown old, so a watch for people does not show it.
	fades bool
	// describe gathers what belongs to an object.
	describe func(ctx context.Context, cl *client.Client, v *T) (description, error)
}

func (res resource[T]) names() []string {
	return append([]string{res.plural, res.singular}, res.others...)
}

func (res resource[T]) get(ctx context.Context, r request) error {
	if r.watch {
		return res.watch(ctx, r)
	}
	if r.name != "" {
		return res.one(ctx, r)
	}
	list, err := client.List[T](ctx, r.client, res.plural, r.query)
	if err != nil {
		return err
	}
	items := list.All(ctx)
	var n int
	switch {
	case r.format.Structured():
		_, err := printer.Structured(r.out, r.format, printer.Listing[T]{Revision: list.Revision, Items: items, Next: list.Next})
		return err
	case r.format.String() == printer.Name:
		_, err := printer.Lines(r.out, items, res.name)
		return err
	default:
		n, err = res.table.Print(r.out, items, r.style)
	}
	if err == nil && n == 0 {
		fmt.Fprintf(r.err, "No %s found.\n", res.plural)
	}
	return err
}

func (res resource[T]) one(ctx context.Context, r request) error {
	v, err := res.fetch(ctx, r)
	if err != nil {
		return err
	}
	if r.format.Structured() {
		return r.format.Object(r.out, v)
	}
	one := func(yield func(T, error) bool) { yield(*v, nil) }
	if r.format.String() == printer.Name {
		_, err = printer.Lines(r.out, one, res.name)
	} else {
		_, err = res.table.Print(r.out, one, r.style)
	}
	return err
}

// fetch asks for the object that has the request's name.
func (res resource[T]) fetch(ctx context.Context, r request) (*T, error) {
	parts := res.parts(r.name, &r.query)
	if r.query != (client.Query{}) {
		return nil, usagef("give either the NAME of one of the %s or filters", res.plural)
	}
	if parts == nil {
		return nil, fmt.Errorf("there is no %s %q: they are named %s", res.singular, r.name, res.form)
	}
	v, err := client.Get[T](ctx, r.client, append([]string{"v1", res.plural}, parts...)...)
	if p, ok := errors.AsType[*api.Problem](err); ok && p.Status == http.StatusBadRequest {
		// What cannot be a name is the name of nothing.
		return nil, errors.New(p.Detail)
	}
	return v, err
}

func (res resource[T]) exists(ctx context.Context, cl *client.Client, name string) (bool, error) {
	_, err := res.fetch(ctx, request{client: cl, name: name})
	if isNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

func (c *cli) getCommand() *cobra.Command {
	var (
		query  client.Query
		watch  bool
		format = printer.NewFormat(printer.Plain, printer.Wide, printer.JSON, printer.YAML, printer.Name)
	)
	cmd := &cobra.Command{
		Use:   "get RESOURCE [NAME]",
		Short: "List what the agent knows, or show one object",
		Long: "List what the agent knows, or show one object.\n\nRESOURCE, in the singular or the plural, and the NAME of one of them:\n" +
			resourceHelp(),
		Example: "  mesh-agent get clusters\n  mesh-agent get nodes -c c2 -o wide\n  mesh-agent get services default/web -o yaml\n" +
			"  mesh-agent get ips 10.0.1.5\n  mesh-agent get ips -l app=web -w",
		Args:              arguments(1, 2, "RESOURCE [NAME]"),
		ValidArgsFunction: c.completeObject,
		RunE: func(cmd *cobra.Command, args []string) error {
			res, r, err := c.request(cmd, args, query, format)
			if err != nil {
				return err
			}
			defer r.client.Close()
			r.watch = watch
			r.style.Wide = format.String() == printer.Wide
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return res.get(ctx, r)
		},
	}
	cmd.Flags().StringVarP(&query.Cluster, "cluster", "c", "", "only those of this cluster")
	cmd.Flags().StringVarP(&query.Namespace, "namespace", "n", "", "only those in this namespace")
	cmd.Flags().StringVarP(&query.Labels, "selector", "l", "", "only those with these labels, such as app=web,tier!=db,zone in (a,b)")
	cmd.Flags().StringVar(&query.Identity, "identity", "", "only those of this identity")
	cmd.Flags().StringVar(&query.Prefix, "prefix", "", "only those within this network")
	cmd.Flags().StringVar(&query.Kind, "kind", "", "only conflicts or events of this kind")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "then show each change, until interrupted")
	cmd.Flags().VarP(format, "output", "o", "form of the output")
	_ = cmd.RegisterFlagCompletionFunc("cluster", c.completeCluster) // the flag is there
	return cmd
}

func findResource(name string) (kind, error) {
	for _, k := range resources() {
		if slices.Contains(k.names(), strings.ToLower(name)) {
			return k, nil
		}
	}
	return nil, usagef("unknown resource %q: want one of %s", name, strings.Join(resourceNames(), ", "))
}

func resourceNames() []string {
	var names []string
	for _, k := range resources() {
		names = append(names, k.names()[0])
	}
	return names
}
