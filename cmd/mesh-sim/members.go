package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/members"
)

// newMembersCommand runs clusters that have no Cilium.
func newMembersCommand() *cobra.Command {
	s := members.DefaultSettings()
	cmd := &cobra.Command{
		Use:   "members [flags]",
		Short: "Clusters without Cilium, published, mirrored and seen by mesh-agent alone",
		Long: `Runs clusters that have no Cilium at all. Each has an etcd and a directory of
manifests that describe it; mesh-agent operates it, mirrors the others into its
etcd, and runs for each of its nodes. Until Ctrl-C; then everything is gone.`,
		Example: "  mesh-sim members --program bin/mesh-agent\n  mesh-sim members --program bin/mesh-agent --standbys 1 --dir /tmp/members",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.Validate(); err != nil {
				return usageError{err}
			}
			return runMembers(cmd.Context(), s, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&s.Program, "program", "bin/mesh-agent", "the agent's program")
	f.IntVar(&s.Clusters, "clusters", s.Clusters, "how many clusters")
	f.IntVar(&s.Nodes, "nodes", s.Nodes, "nodes of each cluster")
	f.IntVar(&s.Standbys, "standbys", s.Standbys, "how many more processes than one operate and mirror a cluster")
	f.StringVar(&s.Dir, "dir", "", "where everything is put (default: a temporary directory)")
	f.StringArrayVar(&s.Flags, "flag", nil, "one more flag for every process, such as --flag=--log-level=debug")
	return cmd
}

func runMembers(ctx context.Context, s members.Settings, out io.Writer) (err error) {
	if s.Dir == "" {
		if s.Dir, err = os.MkdirTemp("", "mesh-members-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(s.Dir)) }()
	} else if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return err
	}
	m, err := members.Start(s)
	defer func() { err = errors.Join(err, m.Stop()) }()
	if err != nil {
		return err
	}
	if _, err := fmt.Fprint(out, m.Hints()); err != nil {
		return err
	}
	return m.Wait(ctx, func(line string) { fmt.Fprintln(out, line) })
}
