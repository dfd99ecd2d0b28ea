package main

import (
	"errors"
	"fmt"
	"os"

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
		log.Info("Starting", "version", version(), "pid", os.Getpid())
		err = h.Run(log)
		if usage, ok := errors.AsType[usageError](err); ok {
			return usage // without how the program found out
		}
		if err != nil {
			return fmt.Errorf("the agent ended: %w", err)
		}
		log.Info("Stopped")
		return nil
	}
	return cmd
}

// newHiveCommand prints the object graph of the program.
func newHiveCommand() *cobra.Command {
	cmd := newHive().Command()
	cmd.Short = "Print the object graph of the program"
	return cmd
}
