package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/simtest/members"
)

// newMembersCommand returns the command that runs clusters without Cilium.
func newMembersCommand() *cobra.Command {
	s := members.DefaultSettings()
	cmd := &cobra.Command{
		Use:   "members [flags]",
		Short: "Simulate clusters without Cilium, which mesh-agent operates",
		Long: `Runs clusters that have no Cilium. Each cluster has an etcd, and a directory of
manifests that describe it. mesh-agent operates the cluster, mirrors the other
clusters into its etcd, and runs for each of its nodes. Ctrl-C ends and removes
everything.`,
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
	f.StringVar(&s.Program, "program", "bin/mesh-agent", "path of the program mesh-agent")
	f.IntVar(&s.Clusters, "clusters", s.Clusters, "number of clusters")
	f.IntVar(&s.Nodes, "nodes", s.Nodes, "number of nodes of each cluster")
	f.IntVar(&s.Standbys, "standbys", s.Standbys, "number of standby processes that operate and mirror each cluster")
	f.StringVar(&s.Dir, "dir", "", "directory for all files (default: a temporary directory)")
	f.StringArrayVar(&s.Flags, "flag", nil, "additional flag for every process, such as --flag=--log-level=debug (repeatable)")
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
