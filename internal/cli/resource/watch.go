package resource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/base/safetext"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

// watch shows the state of the resource and then its changes, until ctx ends.
func (res Kind[T]) watch(ctx context.Context, r Request) error {
	if r.Name != "" {
		if _, err := res.Fetch(ctx, r); err != nil {
			return err // a watch does not wait for an object that does not exist
		}
		if err := res.narrowTo(&r); err != nil {
			return err
		}
	}
	show := res.Shower(r)
	if r.Name != "" && res.matches != nil {
		show = only(func(v T) bool { return res.matches(r.Name, v) }, show)
	}
	if !r.Since.IsZero() {
		show = only(func(v T) bool { return res.happened(v).After(r.Since) }, show)
	}
	lost := func(err error) {
		fmt.Fprintln(r.Err, command.LostAgent(err))
	}
	for e, err := range client.Watch[T](ctx, r.Client, res.Plural, r.Query, lost) {
		if err == nil {
			err = show(e)
		}
		switch {
		case errors.Is(err, context.Canceled) && ctx.Err() != nil:
			return nil // interrupted: this is the normal end
		case err != nil:
			return err
		}
		if e.Kind == api.WatchReset {
			fmt.Fprintf(r.Err, "Everything again: %s\n", printer.Clean(e.Reason))
		}
	}
	return nil
}

func (res Kind[T]) narrowTo(r *Request) error {
	if res.fields == nil {
		return exit.Usagef("one of the %s does not change: watch all of them", res.Plural)
	}
	parts := res.Parts(r.Name, &r.Query) // Fetch has parsed the name, too
	for i, field := range res.fields(&r.Query) {
		*field = parts[i]
	}
	return nil
}

// only shows events whose object passes, and events without an object.
func only[T any](passes func(T) bool, show func(client.Event[T]) error) func(client.Event[T]) error {
	return func(e client.Event[T]) error {
		if e.Object != nil && !passes(*e.Object) {
			return nil
		}
		return show(e)
	}
}

// Shower returns a function that writes one event in the requested format.
func (res Kind[T]) Shower(r Request) func(client.Event[T]) error {
	switch r.Format.String() {
	case printer.JSON:
		return func(e client.Event[T]) error { return writeEvent(r.Out, e, jsonLine, "", "\n") }
	case printer.YAML:
		return func(e client.Event[T]) error { return writeEvent(r.Out, e, safetext.YAML, "---\n", "") }
	}
	show := res.rows(r)
	if r.Format.String() == printer.Name {
		show = func(e client.Event[T]) error { return res.writeName(r.Out, e) }
	}
	if !res.fades {
		return show
	}
	return func(e client.Event[T]) error {
		if e.Kind == api.WatchDelete {
			return nil
		}
		return show(e)
	}
}

func jsonLine(v any) ([]byte, error) { return safetext.JSON(v, "") }

// writeEvent writes one event in one write, so that a program can read event by event.
func writeEvent(w io.Writer, e any, marshal func(any) ([]byte, error), before, after string) error {
	text, err := marshal(e)
	if err == nil {
		_, err = io.WriteString(w, before+string(text)+after)
	}
	return err
}

func (res Kind[T]) writeName(w io.Writer, e client.Event[T]) error {
	if e.Object == nil {
		return nil
	}
	line := printer.Clean(res.name(*e.Object))
	if e.Kind == api.WatchDelete {
		line += " deleted"
	}
	_, err := fmt.Fprintln(w, line)
	return err
}

type change[T any] struct {
	at     string // empty in the state
	what   string
	object T
	how    string // the differences from the last state
}

// rows writes the events as a table: the state first, then each change at once, with its time.
func (res Kind[T]) rows(r Request) func(client.Event[T]) error {
	table := printer.Table[change[T]]{{Title: "TIME    ", Text: func(c change[T]) string { return c.at }}, {Title: "EVENT", Text: func(c change[T]) string { return c.what }, Color: func(c change[T]) printer.Color {
		if c.what == api.WatchDelete {
			return printer.Red
		}
		return printer.NoColor
	}}}
	for _, column := range printer.TableFor(r.Format, res.table) {
		wrapped := printer.Column[change[T]]{
			Title: column.Title, Wide: column.Wide, Right: column.Right,
			Text: func(c change[T]) string { return column.Text(c.object) },
		}
		if column.Color != nil {
			wrapped.Color = func(c change[T]) printer.Color { return column.Color(c.object) }
		}
		table = append(table, wrapped)
	}
	if !res.fades { // past events do not change
		table = append(table, printer.Column[change[T]]{Title: "CHANGE", Kept: true, Text: func(c change[T]) string { return c.how }})
	}
	live, synced, before := table.Live(r.Out, r.Style), false, seen[T]{res: &res, objects: map[string]T{}}
	return func(e client.Event[T]) error {
		switch {
		case e.Kind == api.WatchReset:
			synced = false
			clear(before.objects)
		case e.Kind == api.WatchSynced:
			synced = true
			return live.Flush()
		case e.Object == nil:
			return nil
		case !synced:
			before.changed(e)
			return live.Row(change[T]{"", "state", *e.Object, ""})
		default:
			return errors.Join(live.Row(change[T]{time.Now().Format(time.TimeOnly), e.Kind, *e.Object, before.changed(e)}), live.Flush())
		}
		return nil
	}
}

// mostSeen is the maximum number of objects that a watch stores; for others, it does not show the differences.
const mostSeen = 50_000

// seen stores objects, to show the differences of a change. Only one goroutine may use it.
type seen[T any] struct {
	res     *Kind[T]
	objects map[string]T
}

// changed stores the object of an event, and returns the columns that have changed: "backends 3→2". Columns that are
// not shown appear without values.
func (s seen[T]) changed(e client.Event[T]) string {
	name := s.res.name(*e.Object)
	before, known := s.objects[name]
	switch {
	case e.Kind == api.WatchDelete:
		delete(s.objects, name)
		return ""
	case known || len(s.objects) < mostSeen:
		s.objects[name] = *e.Object
	}
	if !known {
		if len(s.objects) < mostSeen {
			return "new"
		}
		return ""
	}
	var changes []string
	for _, column := range s.res.table {
		was, is := column.Text(before), column.Text(*e.Object)
		title := strings.ToLower(column.Title)
		switch {
		case was == is || title == "age" || title == "since": // these change only with time
		case column.Wide:
			changes = append(changes, title)
		default:
			changes = append(changes, title+" "+cmp.Or(was, "none")+"→"+cmp.Or(is, "none"))
		}
	}
	return strings.Join(changes, ", ")
}
