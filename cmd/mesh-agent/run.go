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
	return newModeCommand(modeRun, "Run the agent: connect to the clusters of the mesh directory and serve one view of them",
		"With a description of the own cluster (--local-manifests, --kubernetes) its services take part and come first. With the own\n"+
			"cluster's kvstore as well (--kvstore-opt etcd.config=FILE) this node and its pods become known there to all clusters.")
}

// newOperateCommand is what one process per cluster does.
func newOperateCommand() *cobra.Command {
	return newModeCommand(modeOperate, "Publish what one process per cluster says of it: its configuration, heartbeat and services",
		"It also deletes identities that nobody uses and locks that were left behind, and with --kvstore-ensure-users it gives etcd\n"+
			"the users of a mesh. Run two: one leads, the other one takes over within the lease of a lock (25 s).")
}

// newMirrorCommand is KVStoreMesh.
func newMirrorCommand() *cobra.Command {
	return newModeCommand(modeMirror, "Copy every remote cluster into the own kvstore, for the agents of this cluster to read there",
		"Agents then have files in their mesh directories that lead to the own kvstore, one named as each remote cluster. Run two: one\n"+
			"leads, the other one takes over within the lease of a lock (25 s).")
}

func newModeCommand(m mode, short, more string) *cobra.Command {
	s := newSettings()
	cmd := &cobra.Command{
		Use:   string(m),
		Short: short,
		Long:  short + ".\n" + more + "\n\n" + settingsHelp,
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
		if err := c.needsKVStore(m); err != nil {
			return err
		}
		log, level, err := logging.New(cmd.ErrOrStderr(), c.LogLevel, c.LogFormat)
		if err != nil {
			return usageError{err}
		}
		for _, name := range strangers(os.Environ(), cmd.Root()) {
			log.Warn("An environment variable that nothing reads; the names of variables follow the flags", "variable", name)
		}
		log.Info("Starting", "mode", string(m), "version", version(), "pid", os.Getpid())
		limitMemory(log)
		h := newHive(m, level)
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

// newHiveCommand prints the object graph of the program in a mode: a command
// below it for each of the others.
func newHiveCommand() *cobra.Command {
	cmd := graphCommand(modeRun)
	cmd.Use, cmd.Short = "hive", "Print the object graph of the program"
	for _, m := range []mode{modeOperate, modeMirror} {
		below := graphCommand(m)
		for flag, value := range map[string]string{"cluster-name": "own", "cluster-id": "1"} { // no mode but run goes without
			_ = below.PersistentFlags().Set(flag, value) // both are there, and take these
		}
		cmd.AddCommand(below)
	}
	return cmd
}

func graphCommand(m mode) *cobra.Command {
	cmd := newHive(m, new(logging.Level)).Command()
	cmd.Args = noArgs
	cmd.Use, cmd.Short = string(m), "Print the object graph of `"+string(m)+"`"
	return cmd
}
