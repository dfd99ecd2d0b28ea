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

// The intervals of a watch.
const (
	DefaultInterval = 2 * time.Second
	leastInterval   = 100 * time.Millisecond
)

// Watched adds the flags --watch and --interval to a command that sends requests to the agent.
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

// AddInterval adds the flag of the interval of a watch.
func AddInterval(cmd *cobra.Command, interval *time.Duration, help string) {
	cmd.Flags().DurationVar(interval, "interval", DefaultInterval, help)
}

// Watch repeats a command until it is interrupted. On a terminal each answer replaces the last one; elsewhere,
// answers are written one after the other, if they are different. An error of the first answer ends it. Later errors
// are shown; when the agent is unreachable, it waits for the agent.
func (c *Env) Watch(cmd *cobra.Command, args []string, interval time.Duration, once func(*cobra.Command, []string) error) error {
	return c.WatchKeys(cmd, args, interval, once, nil, nil)
}

// WatchKeys is Watch with keys: it calls press with each key, and then shows the answer again. A key may end it.
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
	defer func() { cmd.SetErr(w.errs) }() // the error that ends the command
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		err := once(cmd, args)
		if ctx.Err() != nil {
			return nil // interrupted: this is the normal end
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

// watcher shows the output of a command, or its error.
type watcher struct {
	screen   *printer.Screen
	errs     io.Writer
	answered bool   // there was an answer at some time
	answer   string // the last one
	said     string // the last error that was shown; for a lost agent without the reason; empty when there was an answer since
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
	if errors.Is(err, client.ErrUnreachable) { // first the connection is lost, then it is refused: one message for both
		message, said = LostAgent(err), lostAgent
	}
	if w.screen.Redraw {
		if w.screen.Next() == "" { // otherwise the command's output explains more than the error
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

// LostAgent returns the message of a watch whose agent does not answer.
func LostAgent(err error) string { return lostAgent + printer.CleanLines(err.Error()) }

// separator returns the text between two answers that are written one after the other.
func separator(cmd *cobra.Command) string {
	switch format(cmd) {
	case printer.JSON:
		return ""
	case printer.YAML:
		return "---\n"
	}
	return "\n"
}

// structured reports whether the output is for programs, which read each answer as a whole.
func structured(cmd *cobra.Command) bool {
	return format(cmd) == printer.JSON || format(cmd) == printer.YAML
}

func format(cmd *cobra.Command) string {
	if f := cmd.Flag("output"); f != nil {
		return f.Value.String()
	}
	return ""
}
