package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/logging"
)

// newRunCommand is the agent itself.
func newRunCommand() *cobra.Command {
	h := newHive()
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the agent: connect to the clusters of the mesh directory and serve one view of them",
		Args:  noArgs,
	}
	h.RegisterFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		log, err := logging.New(cmd.ErrOrStderr(), h.Viper().GetString("log-level"), h.Viper().GetString("log-format"))
		if err != nil {
			return usageError{err}
		}
		if err := checkConfig(h.Viper().AllSettings()); err != nil {
			return usagef("%s", oneLine(err))
		}
		log.Info("Starting", "version", version(), "pid", os.Getpid())
		if err := h.Run(log); err != nil {
			return fmt.Errorf("the agent ended: %w", err)
		}
		log.Info("Stopped")
		return nil
	}
	return cmd
}

// oneLine shortens an error about the settings to what the user can mend.
func oneLine(err error) string {
	text := err.Error()
	if _, detail, found := strings.Cut(text, "error(s) decoding:"); found {
		text, _, _ = strings.Cut(detail, "Hint:")
		text = strings.Trim(text, "\n*. ")
	}
	return strings.ReplaceAll(text, "\n", "; ")
}

// newHiveCommand prints the object graph of the program.
func newHiveCommand() *cobra.Command {
	cmd := newHive().Command()
	cmd.Short = "Print the object graph of the program"
	return cmd
}
