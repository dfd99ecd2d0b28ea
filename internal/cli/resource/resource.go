// Package resource describes the kinds of objects that an agent shows: their names,
// their tables, and how they are asked for, listed and watched.
package resource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/base/natural"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

// Request is what get or describe was asked for.
type Request struct {
	Client   *client.Client
	Query    client.Query
	Name     string // empty: the list
	Watch    bool
	SortBy   *printer.Path // nil: as the agent lists them
	Since    time.Time     // only what happened after it; zero: everything
	Format   *printer.Format
	Out, Err io.Writer
	Style    printer.Style
}

// NewRequest is what a NAME, which may be empty, asks of the agent, whose client the caller closes.
func NewRequest(c *command.Env, cmd *cobra.Command, name string, query client.Query, format *printer.Format) (Request, error) {
	r := Request{Query: query, Name: name, Format: format, Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr()}
	r.Style = c.Style(cmd)
	var err error
	r.Client, err = c.Connect(cmd)
	return r, err
}

// Resource is one kind of object that can be shown.
type Resource interface {
	names() []string // plural, singular, then others
	Is(name string) bool
	help() string // the form of a name
	complete(ctx context.Context, cl *client.Client, begun string) []string
	sortable() []string // paths of fields
	Get(ctx context.Context, r Request) error
	// Exists reports whether there is an object of this name now.
	Exists(ctx context.Context, cl *client.Client, name string) (bool, error)
}

// Kind is a kind whose objects are T.
type Kind[T any] struct {
	Plural, singular string
	others           []string
	table            printer.Table[T]
	name             func(T) string
	form             string // how one is named, for people
	hint             string // what the help says behind the form
	// fields are the filters for the parts of a name; nil when one object is nothing to watch.
	fields func(q *client.Query) []*string
	// matches reports whether the name is an object's; nil when its parts as filters leave no other.
	matches func(name string, v T) bool
	// Explained: the agent says why there is none of a name.
	Explained bool
	// happened is when what an object is about was; nil for what has no such time.
	happened func(T) time.Time
	// ordered: the agent lists them by time or address, and not by name.
	ordered bool
	// fades: what goes has only grown old, so a watch for people does not show it.
	fades bool
}

func (res Kind[T]) names() []string {
	return append([]string{res.Plural, res.singular}, res.others...)
}

// Is reports whether a person means this kind by a name.
func (res Kind[T]) Is(name string) bool {
	return slices.Contains(res.names(), strings.ToLower(name))
}

func (res Kind[T]) help() string { return res.form + res.hint }

// Parts splits a name at its slashes into the parts of a path. What is missing at its
// beginning is taken from the query, in which that is no filter then, and neither is
// one that says the same. Nil: it is no such name.
func (res Kind[T]) Parts(name string, q *client.Query) []string {
	if res.fields == nil {
		return []string{name}
	}
	fields := res.fields(q)
	parts := strings.SplitN(name, "/", len(fields))
	for i := len(fields) - len(parts); i > 0; i-- {
		parts = slices.Insert(parts, 0, *fields[i-1])
	}
	last := len(parts) - 1
	for i := range last {
		if parts[i] == *fields[i] {
			*fields[i] = ""
		}
	}
	if slices.Contains(parts, "") || last == 2 && strings.Contains(parts[last], "/") {
		return nil
	}
	return parts
}

// Get implements Resource.
func (res Kind[T]) Get(ctx context.Context, r Request) error {
	if !r.Since.IsZero() && (res.happened == nil || r.Name != "") {
		return exit.Usagef("--since is for the lists of events and conflicts, and %s", res.noSince(r.Name))
	}
	if r.Watch {
		return res.watch(ctx, r)
	}
	if r.Name != "" {
		return res.one(ctx, r)
	}
	list, err := client.List[T](ctx, r.Client, res.Plural, r.Query)
	if err != nil {
		return err
	}
	items := res.after(r.Since, list.All(ctx))
	if !res.ordered {
		items = natural.Order(items, res.name)
	}
	if r.SortBy != nil {
		sorted, err := printer.Sorted(items, r.SortBy)
		if errors.Is(err, printer.ErrNoField) {
			return exit.Usagef("--sort-by: %w", err)
		}
		if err != nil {
			return err
		}
		items = func(yield func(T, error) bool) {
			for _, item := range sorted {
				if !yield(item, nil) {
					return
				}
			}
		}
	}
	if r.Format.Structured() {
		_, err := printer.Structured(r.Out, r.Format, printer.Listing[T]{Revision: list.Revision, Items: items, Next: list.Next})
		return err
	}
	n, err := res.print(r, items)
	if err == nil && n == 0 && r.Format.String() != printer.Name {
		fmt.Fprintf(r.Err, "No %s found.\n", res.Plural)
	}
	return err
}

func (res Kind[T]) noSince(name string) string {
	if name != "" {
		return "a NAME is of one object: leave out one of them"
	}
	return "no time of " + res.Plural + " is kept"
}

// after are the objects of which something happened after a time; a zero one is before all.
func (res Kind[T]) after(since time.Time, items iter.Seq2[T, error]) iter.Seq2[T, error] {
	if since.IsZero() {
		return items
	}
	return func(yield func(T, error) bool) {
		for item, err := range items {
			if (err != nil || res.happened(item).After(since)) && !yield(item, err) {
				return
			}
		}
	}
}

func (res Kind[T]) one(ctx context.Context, r Request) error {
	v, err := res.Fetch(ctx, r)
	if err != nil {
		return err
	}
	if r.Format.Structured() {
		return r.Format.Object(r.Out, v)
	}
	_, err = res.print(r, func(yield func(T, error) bool) { yield(*v, nil) })
	return err
}

func (res Kind[T]) print(r Request, items iter.Seq2[T, error]) (n int, err error) {
	if r.Format.String() == printer.Name {
		return printer.Lines(r.Out, items, res.name)
	}
	return printer.TableFor(r.Format, res.table).Print(r.Out, items, r.Style)
}

// Fetch asks for the object that has the request's name.
func (res Kind[T]) Fetch(ctx context.Context, r Request) (*T, error) {
	parts := res.Parts(r.Name, &r.Query)
	if r.Query != (client.Query{}) {
		return nil, exit.Usagef("give either the NAME of one of the %s or filters", res.Plural)
	}
	if parts == nil {
		return nil, fmt.Errorf("there is no %s %q: they are named %s", res.singular, r.Name, res.form)
	}
	v, err := client.Get[T](ctx, r.Client, append([]string{"v1", res.Plural}, parts...)...)
	if p, ok := errors.AsType[*api.Problem](err); ok && p.Status == http.StatusBadRequest {
		// What cannot be a name is the name of nothing.
		return nil, errors.New(p.Detail)
	}
	return v, err
}

// Exists implements Resource.
func (res Kind[T]) Exists(ctx context.Context, cl *client.Client, name string) (bool, error) {
	_, err := res.Fetch(ctx, Request{Client: cl, Name: name})
	if IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// Find returns the kind that has this name.
func Find(name string) (Resource, error) {
	for _, k := range All() {
		if k.Is(name) {
			return k, nil
		}
	}
	return nil, exit.Usagef("unknown resource %q: want one of %s%s", name, strings.Join(Names(), ", "), command.Similar(allNames(), name))
}

func allNames() (names []string) {
	for _, k := range All() {
		names = append(names, k.names()...)
	}
	return names
}

// Names are the plurals of all kinds.
func Names() []string { return printer.Texts(All(), func(k Resource) string { return k.names()[0] }) }

// Collect reads a list, or as many items of it as the query limits it to; cut tells
// whether there are more. The result is never nil without an error.
func Collect[T any](ctx context.Context, cl *client.Client, resource string, q client.Query) (items []T, cut bool, err error) {
	items = []T{}
	next, err := each(ctx, cl, resource, q, func(v T) { items = append(items, v) })
	if err != nil {
		return nil, false, err
	}
	return items, next != "", nil
}

// IsNotFound reports whether the agent has no such object.
func IsNotFound(err error) bool {
	p, ok := errors.AsType[*api.Problem](err)
	return ok && p.Status == http.StatusNotFound
}

// Each asks for all objects of a resource.
func Each[T any](ctx context.Context, cl *client.Client, resource string, take func(T)) error {
	_, err := each(ctx, cl, resource, client.Query{}, take)
	return err
}

// each asks for some objects, and returns the cursor of those that follow.
func each[T any](ctx context.Context, cl *client.Client, resource string, q client.Query, take func(T)) (next string, err error) {
	l, err := client.List[T](ctx, cl, resource, q)
	if err != nil {
		return "", err
	}
	for v, err := range l.All(ctx) {
		if err != nil {
			return "", err
		}
		take(v)
	}
	return l.Next(), nil
}
