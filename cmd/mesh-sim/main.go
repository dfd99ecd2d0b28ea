// Command mesh-sim runs simulated clusters on embedded etcd servers, for trying
// out, tests and benchmarks, and writes the directory of client files that
// mesh-agent watches. Everything that it makes is gone when it ends.
//
// With a command after "--" it also runs that program until either ends, with
// {dir} replaced by the directory and {tmp} by a temporary one:
//
//	mesh-sim --churn 2 -- bin/mesh-agent run --clustermesh-config {dir} --socket {tmp}/agent.sock
//
// While it runs, "mesh-sim ctl" breaks and mends things.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/sim"
	"github.com/mesh-agent/mesh-agent/internal/sim/program"
)

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
)

// usageError is a mistake in the flags.
type usageError struct{ error }

func main() { os.Exit(run(os.Args[1:])) }

// run returns the exit code.
func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	cmd := newCommand()
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "mesh-sim: "+strings.ReplaceAll(err.Error(), "\n", "; "))
	var usage usageError
	var directory *sim.DirectoryError
	var nobody *program.NoSimulatorError
	var refused *sim.RefusedError
	var exit *exec.ExitError
	switch {
	case errors.As(err, &usage), errors.As(err, &directory), errors.As(err, &nobody),
		errors.As(err, &refused) && refused.Usage:
		return exitUsage
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode()
	}
	return exitFailed
}

func newCommand() *cobra.Command {
	s := program.DefaultSettings()
	var podRange string
	cmd := &cobra.Command{
		Use:   "mesh-sim [flags] [-- COMMAND [ARGUMENT...]]",
		Short: "Simulated clusters for mesh-agent",
		Long: `mesh-sim runs simulated clusters on embedded etcd servers, each with what the
clustermesh-apiserver of a real cluster would have written, and writes the
directory of client files that mesh-agent watches. Everything that it makes is
gone when it ends, with SIGINT or SIGTERM.

A COMMAND is run when the clusters are ready, with {dir} replaced by the directory
of the client files, {local} by the client file of the local cluster, {ctl} by the
control socket and {tmp} by a temporary directory; both end together.

While it runs, "mesh-sim ctl" breaks things and mends them.`,
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
	f.IntVar(&s.Clusters, "clusters", s.Clusters, "how many clusters")
	f.StringSliceVar(&s.Names, "names", nil, "their names, comma-separated, instead of --clusters and --prefix")
	f.StringVar(&s.Prefix, "prefix", s.Prefix, "names are this prefix and the cluster ID")
	f.Uint32Var(&s.FirstID, "first-id", s.FirstID, "cluster ID of the first one")
	f.IntVar(&s.Cached, "cached", 0, "how many of them, the last ones, KVStoreMesh serves from one etcd")
	f.StringVar(&s.Local, "local", "", "name of one more cluster: the agent's own, in kvstore mode, outside the mesh directory")
	f.Uint32Var(&s.LocalID, "local-id", 0, "its cluster ID (default: the one after the others)")
	f.Uint32Var(&s.Each.MaxConnectedClusters, "max-connected-clusters", s.Each.MaxConnectedClusters, "255 or 511")
	f.IntVar(&s.Each.Nodes, "nodes", s.Each.Nodes, "nodes of each cluster")
	f.IntVar(&s.Each.Services, "services", s.Each.Services, "global services of each cluster")
	f.IntVar(&s.Each.Backends, "backends", s.Each.Backends, "backends of each service")
	f.IntVar(&s.Each.Identities, "identities", s.Each.Identities, "identities of each cluster")
	f.IntVar(&s.Each.Addresses, "addresses", s.Each.Addresses, "pod addresses of each cluster")
	f.BoolVar(&s.Each.EndpointSlices, "endpoint-slices", s.Each.EndpointSlices, "export services as endpoint slices too")
	f.BoolVar(&s.Each.SlicesOnly, "slices-only", false, "export services as endpoint slices alone")
	f.BoolVar(&s.Each.ServiceExports, "service-exports", s.Each.ServiceExports, "export services through the MCS API too")
	f.StringVar(podRange, "pod-range", "", "range of all pod addresses, divided among the clusters (default: by cluster ID)")
	f.IntVar(&s.Each.KeysPerLease, "keys-per-lease", s.Each.KeysPerLease, "keys that share a lease")
	f.Float64Var(&s.Mesh.Churn, "churn", 0, "changed keys per second and cluster")
	f.Uint64Var(&s.Each.Seed, "seed", s.Each.Seed, "same seed, same contents")
	f.StringVar(&s.Mesh.Dir, "dir", "", "directory for the client files (default: a temporary one)")
	f.StringVar(&s.Mesh.DataDir, "data-dir", "", "directory for the databases (default: a temporary one)")
	f.StringVar(&s.ControlSocket, "ctl-socket", "", "socket for mesh-sim ctl (default: in the temporary directory, where ctl finds it)")
	f.BoolVar(&s.Mesh.Plain, "no-tls", false, "serve without TLS and authentication")
	f.BoolVar(&s.Mesh.NoAuth, "no-auth", false, "let every client certificate read and write everything")
	f.BoolVar(&s.Quiet, "quiet", false, "print nothing but errors")
}

// complete adds what flags alone do not say, and checks everything.
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
			return fmt.Errorf("--pod-range: %w", err)
		}
	}
	return s.Validate()
}
