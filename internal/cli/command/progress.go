package command

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
)

// WithProgress makes commands, and all their subcommands, show their progress on a terminal when they take longer
// than a second, until they print something. A watch does not, because it may wait for changes without end.
func WithProgress(doing string, commands ...*cobra.Command) []*cobra.Command {
	for _, cmd := range commands {
		WithProgress(doing, cmd.Commands()...)
		run := cmd.RunE
		if run == nil || cmd.Name() == "watch" {
			continue
		}
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			errs := cmd.ErrOrStderr()
			p := printer.StartProgress(errs, doing)
			if watch := cmd.Flag("watch"); p == nil || watch != nil && watch.Changed {
				p.End()
				return run(cmd, args)
			}
			defer p.End()
			cmd.SetOut(p.Before(cmd.OutOrStdout()))
			cmd.SetErr(p.Before(errs))
			cmd.SetContext(context.WithValue(cmd.Context(), progressKey{}, p))
			return run(cmd, args)
		}
	}
	return commands
}

type progressKey struct{}

// Progress returns the progress output of a command. It may be nil; then nothing is shown.
func Progress(ctx context.Context) *printer.Progress {
	p, _ := ctx.Value(progressKey{}).(*printer.Progress)
	return p
}
