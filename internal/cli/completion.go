package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/logging"
	"github.com/mesh-agent/mesh-agent/internal/printer"
)

// completeFlags makes the values of a command's flags complete, and those of
// all commands below it.
func completeFlags(cmd *cobra.Command) {
	note := func(f *pflag.Flag) {
		var values []string
		switch format, isFormat := f.Value.(*printer.Format); {
		case isFormat:
			values = strings.Split(format.Type(), "|")
		case f.Name == "log-level":
			values = logging.Levels()
		case f.Name == "log-format":
			values = logging.Formats()
		default:
			return
		}
		// It fails for a flag that has one already, which then knows better.
		_ = cmd.RegisterFlagCompletionFunc(f.Name, command.Complete(func(*cobra.Command, []string) []string { return values }))
	}
	cmd.LocalFlags().VisitAll(note)
	for _, sub := range cmd.Commands() {
		completeFlags(sub)
	}
}
