package command

import (
	"errors"
	"fmt"
	"io"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

// Between two looks of a watch.
const (
	DefaultInterval = 2 * time.Second
	leastInterval   = 100 * time.Millisecond
)

// Watched gives a command that asks the agent the flags --watch and --interval.
func (c *Env) Watched(cmd *cobra.Command) *cobra.Command {
	var watch bool
	var interval time.Duration
	once := cmd.RunE
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "refresh the output until you interrupt the command")
	AddInterval(cmd, &interval, "with --watch: time between two refreshes")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if watch {
			return c.Watch(cmd, args, interval, once)
		}
		if cmd.Flags().Changed("interval") {
			return exit.Usagef("--interval needs --watch")
		}
		return once(cmd, args)
	}
	return cmd
}

// AddInterval adds the flag for how often a watch looks.
func AddInterval(cmd *cobra.Command, interval *time.Duration, help string) {
	cmd.Flags().DurationVar(interval, "interval", DefaultInterval, help)
}

// Watch runs what shows something again and again until the command is interrupted: on a terminal at
// the same place, elsewhere below each other, as far as it is different. An error ends it when it is the
// first answer; later ones are shown, and an agent that is away is waited for.
func (c *Env) Watch(cmd *cobra.Command, args []string, interval time.Duration, once func(*cobra.Command, []string) error) error {
	return c.WatchKeys(cmd, args, interval, once, nil, nil)
}

// WatchKeys is Watch with keys, of which each is pressed, and then shown what it changes. A key may end it.
func (c *Env) WatchKeys(cmd *cobra.Command, args []string, interval time.Duration, once func(*cobra.Command, []string) error, keys <-chan byte, press func(key byte) (quit bool)) error {
	if interval < leastInterval {
		return exit.Usagef("--interval must be %s at the least", leastInterval)
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	cmd.SetContext(ctx)
	w := &watcher{errs: cmd.ErrOrStderr(), screen: printer.NewScreen(cmd.OutOrStdout(), c.Getenv, separator(cmd))}
	w.screen.Redraw = w.screen.Redraw && !structured(cmd)
	cmd.SetOut(w.screen)
	if w.screen.Redraw {
		cmd.SetErr(w.screen)
	}
	defer func() { cmd.SetErr(w.errs) }() // the error that ends it
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		err := once(cmd, args)
		if ctx.Err() != nil {
			return nil // interrupted: that is how it ends
		}
		if err := w.show(err); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case key, pressed := <-keys:
			if !pressed { // the terminal is gone
				keys = nil
			} else if press(key) {
				return nil
			}
		}
	}
}

// watcher shows what a command has printed, or why it has not.
type watcher struct {
	screen   *printer.Screen
	errs     io.Writer
	answered bool   // at some time
	answer   string // the last one
	said     string // the error that was shown last; of a lost agent only that; empty when there was an answer since
}

func (w *watcher) show(err error) error {
	_, usage := errors.AsType[exit.UsageError](err)
	switch {
	case err == nil, errors.Is(err, exit.ErrUnwell), errors.Is(err, exit.ErrFaulty):
		w.answered, w.answer, w.said = true, w.screen.Next(), ""
		return w.screen.Show()
	case !w.answered || usage:
		if shown := w.screen.Show(); shown != nil {
			return shown
		}
		return err
	}
	message := "Error: " + printer.CleanLines(err.Error())
	said := message
	if errors.Is(err, client.ErrUnreachable) { // first a connection that is cut, then one that is refused: once
		message, said = LostAgent(err), lostAgent
	}
	if w.screen.Redraw {
		if w.screen.Next() == "" { // else it says more than the error
			fmt.Fprint(w.screen, w.answer)
		}
		fmt.Fprintf(w.screen, "\n%s\n", message)
		return w.screen.Show()
	}
	w.screen.Discard()
	if said == w.said {
		return nil
	}
	w.said = said
	_, err = fmt.Fprintln(w.errs, message)
	return err
}

const lostAgent = "Lost the agent, waiting until it answers: "

// LostAgent is what a watch says whose agent does not answer.
func LostAgent(err error) string { return lostAgent + printer.CleanLines(err.Error()) }

// separator is what comes between two answers of a command that are below each other.
func separator(cmd *cobra.Command) string {
	switch format(cmd) {
	case printer.JSON:
		return ""
	case printer.YAML:
		return "---\n"
	}
	return "\n"
}

// structured reports whether a program reads the answers, each as a whole.
func structured(cmd *cobra.Command) bool {
	return format(cmd) == printer.JSON || format(cmd) == printer.YAML
}

func format(cmd *cobra.Command) string {
	if f := cmd.Flag("output"); f != nil {
		return f.Value.String()
	}
	return ""
}
