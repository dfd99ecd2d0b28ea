package main

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/logging"
)

// newRunCommand is the agent itself.
func newRunCommand() *cobra.Command {
	s := newSettings()
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the agent: connect to the clusters of the mesh directory and serve one view of them",
		Long:  "Run the agent: connect to the clusters of the mesh directory and serve one view of them.\n\n" + settingsHelp,
		Args:  noArgs,
	}
	s.register(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := s.load(os.Getenv)
		if err != nil {
			return err
		}
		if err := s.validate(c); err != nil {
			return err
		}
		log, level, err := logging.New(cmd.ErrOrStderr(), c.LogLevel, c.LogFormat)
		if err != nil {
			return usageError{err}
		}
		for _, name := range strangers(os.Environ(), cmd.Root()) {
			log.Warn("An environment variable that nothing reads; the names of variables follow the flags", "variable", name)
		}
		log.Info("Starting", "version", version(), "pid", os.Getpid())
		h := newHive(level)
		s.give(h)
		if err := h.Run(log); err != nil {
			return ended(log, c, err)
		}
		log.Info("Stopped")
		return nil
	}
	return cmd
}

// ended says why the agent ended: as a line of the log where programs read it,
// or else as every command does.
func ended(log *slog.Logger, c Config, err error) error {
	err = fmt.Errorf("the agent ended: %w", err)
	if c.LogFormat != "json" {
		return err
	}
	log.Error("The agent ended", "error", err)
	return saidError{err}
}

// newHiveCommand prints the object graph of the program.
func newHiveCommand() *cobra.Command {
	cmd := newHive(new(logging.Level)).Command()
	cmd.Short = "Print the object graph of the program"
	return cmd
}
