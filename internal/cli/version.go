package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/base/notices"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/base/version"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
)

func newVersionCommand(v version.Info) *cobra.Command {
	var licenses bool
	format := printer.NewFormat(printer.Text, printer.JSON, printer.YAML)
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version of this program",
		Args:  command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if licenses && cmd.Flags().Changed("output") {
				return exit.Usagef("--notices is a text: -o does not go with it")
			}
			if licenses {
				return notices.Write(cmd.OutOrStdout())
			}
			if format.Structured() {
				return format.Object(cmd.OutOrStdout(), v)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "mesh-agent %s", v.Version)
			if v.Commit != "" {
				fmt.Fprintf(cmd.OutOrStdout(), " (commit %.12s of %s)", v.Commit, v.Date)
			}
			fmt.Fprintf(cmd.OutOrStdout(), " %s %s\n", v.Go, v.Platform)
			return nil
		},
	}
	cmd.Flags().VarP(format, "output", "o", "output format")
	cmd.Flags().BoolVar(&licenses, "notices", false, "show the licenses and notices of all parts of this program")
	return cmd
}
