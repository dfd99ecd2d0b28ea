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

// Style is how a command writes for a person. The commands in its advice ask the same agent about the same mesh: they
// have those flags of this command line that they know.
func (c *Env) Style(cmd *cobra.Command) printer.Style {
	style := printer.StyleFor(cmd.OutOrStdout(), c.Getenv)
	style.Paste = func(line string) string { return pasted(cmd.Root(), c.given, line) }
	return style
}

// Given notes the flags of the command line, before others get their values from the environment and from files.
func (c *Env) Given(cmd *cobra.Command) {
	settings := config.NewSettings()
	c.given = nil
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if cmd.Root().PersistentFlags().Lookup(f.Name) != nil || settings.Has(f.Name) {
			c.given = append(c.given, f)
		}
	})
}

// pasted is a command line of this program with the flags that were given, as far as its command has them.
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
			case clientfile.Redact(value) != value: // what is shown has no secrets
			case f.NoOptDefVal == value:
				line += " --" + f.Name
			default:
				line += " --" + f.Name + " " + codes.Quote(value)
			}
		}
	}
	return line
}
