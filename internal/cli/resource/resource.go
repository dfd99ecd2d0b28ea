// Package resource has the kinds of objects that an agent shows: their names, their tables, and how they are
// requested, listed and watched.
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

// Request is a request of get or describe.
type Request struct {
	Client   *client.Client
	Query    client.Query
	Name     string // empty: the list
	Watch    bool
	SortBy   *printer.Path // nil: the agent's order
	Since    time.Time     // only objects after it; zero: all
	Format   *printer.Format
	Out, Err io.Writer
	Style    printer.Style
}

// NewRequest returns the request for a NAME, which may be empty. The caller closes its client.
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
	// Exists reports whether an object of this name exists now.
	Exists(ctx context.Context, cl *client.Client, name string) (bool, error)
}

// Kind is a kind whose objects are T.
type Kind[T any] struct {
	Plural, singular string
	others           []string
	table            printer.Table[T]
	name             func(T) string
	form             string // the form of a name, for users
	hint             string // the text of the help after the form
	// fields are the filters for the parts of a name; nil for a kind whose objects do not change.
	fields func(q *client.Query) []*string
	// matches reports whether an object has the name; nil when its parts as filters select only this object.
	matches func(name string, v T) bool
	// Explained is true when the agent explains why an object of a name does not exist.
	Explained bool
	// happened returns the time of the event that an object is about; nil for a kind without times.
	happened func(T) time.Time
	// ordered is true when the agent lists the objects by time or address, and not by name.
	ordered bool
	// fades is true when objects are removed only because of their age: a watch for users does not show that.
	fades bool
}

func (res Kind[T]) names() []string {
	return append([]string{res.Plural, res.singular}, res.others...)
}

// Is reports whether a name means this kind.
func (res Kind[T]) Is(name string) bool {
	return slices.Contains(res.names(), strings.ToLower(name))
}

func (res Kind[T]) help() string { return res.form + res.hint }

// Parts splits a name at its slashes into the parts of a path. Missing parts at its beginning are taken from the
// query. A field of the query that is taken, or equals its part, is then removed from the query. The result is nil
// when the name is invalid.
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

// after returns the objects with an event after a time; all for the zero time.
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

// Fetch requests the object with the request's name.
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
		// There is no object with an invalid name.
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

// Names returns the plurals of all kinds.
func Names() []string { return printer.Texts(All(), func(k Resource) string { return k.names()[0] }) }

// Collect requests a list, at most the limit of the query; cut reports whether there are more items. Without an
// error, the result is never nil.
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

// Each requests all objects of a resource.
func Each[T any](ctx context.Context, cl *client.Client, resource string, take func(T)) error {
	_, err := each(ctx, cl, resource, client.Query{}, take)
	return err
}

// each requests objects, and returns the cursor of the next ones.
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
