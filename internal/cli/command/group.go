package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
)

// HelpOrUnknown is the function of a command that only has subcommands.
func HelpOrUnknown(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	return exit.Usagef("unknown command %q%s", args[0], similar(cmd, args[0]))
}

func similar(cmd *cobra.Command, to string) string {
	if names := cmd.SuggestionsFor(to); len(names) > 0 {
		return "; did you mean " + strings.Join(names, " or ") + "?"
	}
	return ""
}

// Similar returns a suggestion of similar names; empty when there are none.
func Similar(names []string, to string) string {
	all := &cobra.Command{SuggestionsMinimumDistance: 2}
	for _, name := range names {
		all.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	return similar(all, to)
}

// Group returns a command that only has subcommands.
func Group(name, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: name, Short: short, Args: cobra.ArbitraryArgs, RunE: HelpOrUnknown,
		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(commands...)
	return cmd
}

// WithOutput adds the flag of the output format to a command.
func WithOutput(cmd *cobra.Command, format *printer.Format) *cobra.Command {
	cmd.Flags().VarP(format, "output", "o", "output format")
	return cmd
}

// Arguments returns a check of the number of arguments.
func Arguments(atLeast, atMost int, form string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < atLeast || len(args) > atMost {
			return exit.Usagef("want %s, not %d arguments", form, len(args))
		}
		return nil
	}
}

// NoArgs refuses arguments.
func NoArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return exit.Usagef("unexpected argument %q", args[0])
	}
	return nil
}

// Completer completes one word, or one flag.
type Completer func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)

// Complete completes a word with the names that begin with it.
func Complete(names func(cmd *cobra.Command, args []string) []string) Completer {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		return Begun(names(cmd, args), begun), cobra.ShellCompDirectiveNoFileComp
	}
}

// Begun returns the names that begin with the text begun.
func Begun(names []string, begun string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.HasPrefix(name, begun) })
}
