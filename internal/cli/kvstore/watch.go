package kvstore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/cli/target"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store"
)

// The events of a watch.
const (
	eventHave   = "have" // it existed when the watch began
	EventPut    = "put"
	eventDelete = "delete"
)

const rewatchMax = 10 * time.Second // longest pause between two attempts to reconnect

func kvWatchCommand(c *command.Env, k *target.Choice) *cobra.Command {
	var (
		w      kvWatch
		format = printer.NewFormat(command.Plain, printer.JSON)
	)
	cmd := &cobra.Command{
		Use:   "watch PREFIX",
		Short: "Print the existing keys, and then each change",
		Long: "Print the existing keys (have), and then each change (put, delete), until you interrupt the command. PREFIX has the\n" +
			"same form as in 'list'. After a lost connection the command continues where it was, and prints the changes that it\n" +
			"missed. A write of an equal value is not a change.",
		Example: "  mesh-agent kvstore watch --cluster c2 cilium/.heartbeat\n  mesh-agent kvstore watch --cluster c2 cilium/state/ --from-now -o json",
		Args:    onePrefix,
		RunE: target.Asking(c, k, func(cmd *cobra.Command, args []string, t *target.Target) error {
			w.out, w.err, w.json = bufio.NewWriter(cmd.OutOrStdout()), cmd.ErrOrStderr(), format.Structured()
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return w.run(ctx, t, args[0])
		}),
	}
	cmd.Flags().BoolVar(&w.fromNow, "from-now", false, "do not print the existing keys")
	return command.WithOutput(cmd, format)
}

type kvWatch struct {
	fromNow, json bool
	out           *bufio.Writer
	err           io.Writer

	selected string
	watch    *store.Watch[store.Raw]
	broken   context.CancelCauseFunc // ends the whole watch: the output cannot be written
}

// run prints events until ctx ends, and then returns nil. It fails when the kvstore does not answer at the start;
// later it tries again without limit.
func (w *kvWatch) run(ctx context.Context, t *target.Target, given string) error {
	client, selected, err := open(t, ctx, given, w.err)
	if err != nil {
		return err
	}
	defer func() { client.Close() }()
	command.Note(w.err, fmt.Sprintf("Watching %q of %s at %s.", selected, t.Name, client.Status().Endpoint))
	caller := ctx
	ctx, w.broken = context.WithCancelCause(ctx)
	defer w.broken(nil)
	w.selected = selected
	w.watch = store.NewRawWatch(w.apply, slog.New(slog.DiscardHandler))
	for {
		err := w.session(ctx, client)
		client.Close()
		if ctx.Err() == nil {
			command.Note(w.err, "Interrupted, trying again: "+printer.OneLine(err))
			client, err = w.again(ctx, t, client)
		}
		switch {
		case caller.Err() != nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			command.Note(w.err, "Going on at "+client.Status().Endpoint+".")
		}
	}
}

func (w *kvWatch) session(ctx context.Context, client kvstore.Session) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return client.Run(ctx, nil) })
	g.Go(func() error {
		return w.watch.Run(ctx, store.Session{Client: client, Prefix: w.selected, OneKey: isOneKey(w.selected)})
	})
	return g.Wait()
}

// again connects until it works or ctx ends. When ctx ends, it returns the old client.
func (w *kvWatch) again(ctx context.Context, t *target.Target, old kvstore.Session) (kvstore.Session, error) {
	client, said := old, ""
	err := waiting.UntilDone(ctx, 100*time.Millisecond, rewatchMax, func() error {
		next, err := t.Connect(ctx)
		if err == nil {
			client = next
		}
		return err
	}, func(err error, _ time.Duration) {
		if text := printer.OneLine(err); text != said {
			command.Note(w.err, "Still trying: "+text)
			said = text
		}
	})
	return client, err
}

func (w *kvWatch) apply(changes []store.Change[store.Raw]) {
	first := !w.watch.Status().Synced
	if first && w.fromNow {
		return
	}
	var err error
	for _, ch := range changes {
		key := w.selected
		if !isOneKey(key) {
			key += ch.Name
		}
		shown := show(kvstore.KeyValue{Key: []byte(key)})
		shown.Event = eventDelete
		if ch.New != nil {
			shown = shown.withValue(key, *ch.New)
			shown.Event = EventPut
			if first {
				shown.Event = eventHave
			}
		}
		err = errors.Join(err, printKey(w.out, shown, w.json))
	}
	if err = errors.Join(err, w.out.Flush()); err != nil {
		w.broken(fmt.Errorf("writing: %w", err))
	}
}
