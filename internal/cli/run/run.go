// Package run has the long-running commands: one for each mode of the agent, and the one that prints their object
// graphs. Their flags are in internal/agent/config (flags.go).
package run

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/agent"
	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/base/logging"
	"github.com/mesh-agent/mesh-agent/internal/base/version"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
)

// Commands returns the commands of the modes, and the one that prints their object graphs, for this version of the
// program.
func Commands(v version.Info) []*cobra.Command {
	return []*cobra.Command{
		newModeCommand(v, config.ModeRun, "Run the agent: connect to the clusters of the mesh directory and serve one view of them",
			"With a description of the own cluster (--local-manifests, --kubernetes) its services are part of the view, and take precedence.\n"+
				"With the own cluster's kvstore as well (--kvstore-opt etcd.config=FILE) the agent registers this node and its pods there."),
		newModeCommand(v, config.ModeOperate, "Publish the own cluster: its configuration, heartbeat and services (one process per cluster)",
			"It also deletes unused identities and abandoned locks, and with --kvstore-ensure-users it creates the users of etcd. Run two: one leads, the other one takes over within the lease of a lock (25 s)."),
		newModeCommand(v, config.ModeMirror, "Copy all remote clusters into the own kvstore, where the agents of this cluster read them",
			"The mesh directories of the agents then have one file for each remote cluster, which leads to the own kvstore. Run two: one\n"+
				"leads, the other one takes over within the lease of a lock (25 s)."),
		newHiveCommand(v),
	}
}

func newModeCommand(v version.Info, m config.Mode, short, more string) *cobra.Command {
	s := config.NewSettings()
	cmd := &cobra.Command{
		Use:   string(m),
		Short: short,
		Long:  short + ".\n" + more + "\n\n" + config.SettingsHelp,
		Args:  command.NoArgs,
	}
	s.RegisterMode(cmd.Flags(), m)
	cmd.SetUsageFunc(func(cmd *cobra.Command) error {
		_, err := fmt.Fprintf(cmd.OutOrStderr(), "Usage:\n  %s\n\nFlags:\n%s\nGlobal Flags:\n%s",
			cmd.UseLine(), s.Help(cmd.LocalFlags()), cmd.InheritedFlags().FlagUsages())
		return err
	})
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := load(s)
		if err != nil {
			return err
		}
		if err := agent.NeedsKVStore(c, m); err != nil {
			return err
		}
		log, level, err := logging.New(cmd.ErrOrStderr(), c.LogLevel, c.LogFormat)
		if err != nil {
			return exit.UsageError{Err: err}
		}
		for _, name := range config.UnknownVariables(os.Environ(), cmd.Root()) {
			log.Warn("No setting has the name of this environment variable", "variable", name)
		}
		for _, name := range s.Unused(m) {
			level := slog.LevelDebug // several modes can share a file and an environment
			if s.OnCommandLine(name) {
				level = slog.LevelWarn
			}
			log.Log(cmd.Context(), level, "This mode does not use the setting", "setting", name, "mode", string(m))
		}
		log.Info("Starting", "mode", string(m), "version", v.Version, "pid", os.Getpid())
		agent.LimitMemory(log)
		if err := agent.NewHive(v, m, c, level).Run(agent.WithoutHive(log)); err != nil {
			return ended(log, c, err)
		}
		log.Info("Stopped")
		return nil
	}
	return cmd
}

// load returns the configuration of a mode, without a mistake.
func load(s *config.Settings) (config.Config, error) {
	c, err := s.Load(os.Getenv)
	if err == nil {
		err = s.Check()
	}
	return c, err
}

// ended returns why the agent ended. With the log format json, it logs the error for programs; otherwise the error is
// printed as for every command.
func ended(log *slog.Logger, c config.Config, err error) error {
	err = fmt.Errorf("the agent ended: %w", err)
	if c.LogFormat != "json" {
		return err
	}
	log.Error("The agent ended", "error", err)
	return exit.ReportedError{Err: err}
}

// newHiveCommand returns the command that prints the object graph of the program in mode run, with a subcommand for
// each other mode.
func newHiveCommand(v version.Info) *cobra.Command {
	cmd := graphCommand(v, config.ModeRun)
	cmd.Use, cmd.Short = "hive", "Print the object graph of the program"
	for _, m := range []config.Mode{config.ModeOperate, config.ModeMirror} {
		below := graphCommand(v, m)
		for flag, value := range map[string]string{"cluster-name": "own", "cluster-id": "1"} { // only run works without these
			_ = below.PersistentFlags().Lookup(flag).Value.Set(value) // a default: both flags exist, and accept these values
		}
		cmd.AddCommand(below)
	}
	return cmd
}

// graphCommand replaces hive's own command. That one also draws the graph with a template of the standard library. In a
// program that runs a template, the linker keeps all exported methods.
func graphCommand(v version.Info, m config.Mode) *cobra.Command {
	s := config.NewSettings()
	cmd := &cobra.Command{
		Use: string(m), Short: "Print the object graph of `" + string(m) + "`",
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := load(s)
			if err != nil {
				return err
			}
			return agent.NewHive(v, m, c, new(logging.Level)).PrintObjects(cmd.OutOrStdout(), slog.Default())
		},
	}
	s.Register(cmd.PersistentFlags())
	return cmd
}
