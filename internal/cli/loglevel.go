package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/base/logging"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

func logLevelCommand(c *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "log-level [LEVEL]",
		Short: "Show or change the log level of the running agent",
		Long: "Show the log level of the agent, or change it until the agent ends.\n" +
			"The agent accepts a change only over its unix socket.",
		Example:   "  mesh-agent log-level\n  mesh-agent log-level debug",
		Args:      command.Arguments(0, 1, "at most one LEVEL"),
		ValidArgs: logging.Levels(),
		RunE: c.Asking(func(cmd *cobra.Command, args []string, cl *client.Client) (err error) {
			var level *api.LogLevel
			if len(args) == 0 {
				level, err = cl.LogLevel(cmd.Context())
			} else if err = logging.CheckLevel(args[0]); err != nil {
				return exit.UsageError{Err: err}
			} else {
				level, err = cl.SetLogLevel(cmd.Context(), args[0])
			}
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), level.Level)
			}
			return err
		}),
	}
}
