package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
)

// Style returns the style of a command's output for users. The commands in its advice are for the same agent and the
// same mesh: they get the flags of this command line that they support.
func (c *Env) Style(cmd *cobra.Command) printer.Style {
	style := printer.StyleFor(cmd.OutOrStdout(), c.Getenv)
	style.Paste = func(line string) string { return pasted(cmd.Root(), c.given, line) }
	return style
}

// Given stores the flags of the command line, before other flags get their values from the environment and from
// files.
func (c *Env) Given(cmd *cobra.Command) {
	settings := config.NewSettings()
	c.given = nil
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if cmd.Root().PersistentFlags().Lookup(f.Name) != nil || settings.Has(f.Name) {
			c.given = append(c.given, f)
		}
	})
}

// pasted returns a command line of this program with the given flags that its command has.
func pasted(root *cobra.Command, given []*pflag.Flag, line string) string {
	words := strings.Fields(line)
	if len(given) == 0 || len(words) == 0 {
		return line
	}
	to, _, err := root.Find(words[1:])
	if err != nil || to == root {
		return line
	}
	for _, f := range given {
		if has := to.Flag(f.Name); has == nil || slices.Contains(words, "--"+f.Name) {
			continue
		}
		for _, value := range config.Values(f) {
			switch {
			case clientfile.Redact(value) != value: // output contains no secrets
			case f.NoOptDefVal == value:
				line += " --" + f.Name
			default:
				line += " --" + f.Name + " " + codes.Quote(value)
			}
		}
	}
	return line
}
