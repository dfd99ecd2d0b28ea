// Package command is the command line of mesh-sim.
package command

import (
	"errors"
	"fmt"
	"net/netip"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/simtest/sim"
	"github.com/mesh-agent/mesh-agent/simtest/sim/program"
)

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
)

// usageError is a mistake in the flags.
type usageError struct{ error }

// ExitCode is the exit code of mesh-sim for an error of its command line, and of its COMMAND if that failed.
func ExitCode(err error) int {
	var usage usageError
	var directory *sim.DirectoryError
	var nobody *program.NoSimulatorError
	var refused *sim.RefusedError
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage), errors.As(err, &directory), errors.As(err, &nobody),
		errors.As(err, &refused) && refused.Usage:
		return exitUsage
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode()
	}
	return exitFailed
}

// New returns the command line, which prints no errors itself.
func New() *cobra.Command {
	s := program.DefaultSettings()
	var podRange string
	cmd := &cobra.Command{
		Use:   "mesh-sim [flags] [-- COMMAND [ARGUMENT...]]",
		Short: "Simulate clusters for mesh-agent",
		Long: `mesh-sim runs simulated clusters on embedded etcd servers. Each cluster has the
keys that the clustermesh-apiserver of a real cluster writes. mesh-sim also writes
the mesh directory: the client files that mesh-agent reads. On SIGINT or SIGTERM it
ends and removes all its files.

When the clusters are ready, mesh-sim starts the COMMAND; both end together. In the
COMMAND, {dir} stands for the mesh directory, {local} for the client file of the
local cluster, {ctl} for the control socket, and {tmp} for a temporary directory.

"mesh-sim ctl" breaks and repairs clusters while mesh-sim runs.`,
		Example: `  mesh-sim --dir /tmp/mesh --churn 10
  mesh-sim --clusters 5 --cached 3 --local home
  mesh-sim --clusters 1 --nodes 1000 --addresses 1000000 --identities 10000 --pod-range 10.0.0.0/8
  mesh-sim --churn 2 -- bin/mesh-agent run --clustermesh-config {dir} --socket {tmp}/agent.sock`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := complete(cmd, &s, podRange, args); err != nil {
				return usageError{err}
			}
			return program.Simulate(cmd.Context(), s, cmd.OutOrStdout())
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	cmd.CompletionOptions.DisableDefaultCmd = true
	addFlags(cmd, &s, &podRange)
	cmd.AddCommand(newControlCommand(), newMembersCommand())
	return cmd
}

func addFlags(cmd *cobra.Command, s *program.Settings, podRange *string) {
	f := cmd.Flags()
	f.SortFlags = false
	f.IntVar(&s.Clusters, "clusters", s.Clusters, "number of clusters")
	f.StringSliceVar(&s.Names, "names", nil, "names of the clusters, comma-separated, instead of --clusters and --prefix")
	f.StringVar(&s.Prefix, "prefix", s.Prefix, "prefix of the names; the cluster ID follows it")
	f.Uint32Var(&s.FirstID, "first-id", s.FirstID, "cluster ID of the first cluster")
	f.IntVar(&s.Cached, "cached", 0, "number of clusters, the last ones, that share one etcd, as with KVStoreMesh")
	f.StringVar(&s.Local, "local", "", "name of one additional cluster, the agent's own, outside the mesh directory")
	f.Uint32Var(&s.LocalID, "local-id", 0, "cluster ID of the local cluster (default: the next free one)")
	f.Uint32Var(&s.Each.MaxConnectedClusters, "max-connected-clusters", s.Each.MaxConnectedClusters, "255 or 511")
	f.IntVar(&s.Each.Nodes, "nodes", s.Each.Nodes, "number of nodes of each cluster")
	f.IntVar(&s.Each.Services, "services", s.Each.Services, "number of global services of each cluster")
	f.IntVar(&s.Each.Backends, "backends", s.Each.Backends, "number of backends of each service")
	f.IntVar(&s.Each.Identities, "identities", s.Each.Identities, "number of identities of each cluster")
	f.IntVar(&s.Each.Addresses, "addresses", s.Each.Addresses, "number of pod addresses of each cluster")
	f.BoolVar(&s.Each.EndpointSlices, "endpoint-slices", s.Each.EndpointSlices, "also export services as endpoint slices")
	f.BoolVar(&s.Each.SlicesOnly, "slices-only", false, "export services only as endpoint slices")
	f.BoolVar(&s.Each.ServiceExports, "service-exports", s.Each.ServiceExports, "also export services through the MCS API")
	f.StringVar(podRange, "pod-range", "", "range of all pod addresses, divided among the clusters (default: from the cluster ID)")
	f.IntVar(&s.Each.KeysPerLease, "keys-per-lease", s.Each.KeysPerLease, "number of keys that share a lease")
	f.Float64Var(&s.Mesh.Churn, "churn", 0, "number of changed keys per second and cluster")
	f.Uint64Var(&s.Each.Seed, "seed", s.Each.Seed, "seed of the contents; the same seed gives the same contents")
	f.StringVar(&s.Mesh.Dir, "dir", "", "directory for the client files (default: a temporary one)")
	f.StringVar(&s.Mesh.DataDir, "data-dir", "", "directory for the databases (default: a temporary one)")
	f.StringVar(&s.Log, "command-log", "", "file for what COMMAND prints, such as {tmp}/agent.log; its end is shown when COMMAND fails (default: print it)")
	f.StringVar(&s.ControlSocket, "ctl-socket", "", "socket for mesh-sim ctl (default: in the temporary directory, where ctl finds it)")
	f.BoolVar(&s.Mesh.Plain, "no-tls", false, "serve without TLS and authentication")
	f.BoolVar(&s.Mesh.NoAuth, "no-auth", false, "let every client certificate read and write everything")
	f.BoolVar(&s.Quiet, "quiet", false, "print only errors")
}

// complete adds settings that need more than one flag, and checks everything.
func complete(cmd *cobra.Command, s *program.Settings, podRange string, args []string) error {
	if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
		return fmt.Errorf("unexpected argument %q: a command to run goes after --", args[0])
	}
	s.Command = args
	if cmd.Flags().Changed("names") && (cmd.Flags().Changed("clusters") || cmd.Flags().Changed("prefix")) {
		return errors.New("--names says how many clusters there are and what they are called: leave --clusters and --prefix out")
	}
	if podRange != "" {
		var err error
		if s.Each.PodRange, err = netip.ParsePrefix(podRange); err != nil {
			return fmt.Errorf("--pod-range %q is not a range of addresses such as 10.0.0.0/8", podRange)
		}
	}
	return s.Validate()
}
