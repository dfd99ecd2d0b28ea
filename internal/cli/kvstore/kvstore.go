// Package kvstore reads a cluster's kvstore, without an agent.
package kvstore

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/cli/target"
)

// New returns the command.
func New(c *command.Env) *cobra.Command {
	k := &target.Choice{Settings: config.NewSettings()}
	cmd := command.Group("kvstore", "Read a cluster's kvstore, without a running agent",
		kvGetCommand(c, k), kvListCommand(c, k), kvWatchCommand(c, k), kvStatusCommand(c, k))
	cmd.Long = "Read a cluster's kvstore, without a running agent: that of --cluster, by its client file in the mesh directory,\n" +
		"or else the local one, by --kvstore-opt. Nothing is ever written.\n\n" +
		"Exit code 0: there is an answer. 1: it is not a good one, such as a key that does not exist.\n" +
		"2: wrong usage, or the kvstore does not answer."
	f := cmd.PersistentFlags()
	k.Settings.Register(f, "clustermesh-config", "kvstore-opt")
	f.StringVar(&k.Cluster, "cluster", "", "ask the kvstore of this remote cluster")
	f.DurationVar(&k.Timeout, "timeout", 10*time.Second, "how long to wait for each endpoint, and for each answer")
	_ = cmd.RegisterFlagCompletionFunc("cluster", target.CompleteClientFile(c, k.Settings)) // the flag is there
	return cmd
}
