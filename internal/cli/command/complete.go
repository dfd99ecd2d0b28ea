package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// NoFiles is the answer of every completion that is not about files.
const NoFiles = cobra.ShellCompDirectiveNoFileComp

// Completer completes one word, or one flag.
type Completer func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)

// StartingWith keeps the names that start with what was typed.
func StartingWith(begun string, names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, begun) })
}
