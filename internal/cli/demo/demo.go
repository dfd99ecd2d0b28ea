// Package demo runs an agent in a simulated mesh, so that users can try it.
package demo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/pkg/api"
)

// simulator is the program that runs the simulated clusters.
const simulator = "mesh-sim"

// commandLine returns the command line of the simulator with an agent, as `make run` uses it; flags are further flags
// of the simulator. The agent listens on its default addresses unless others are given.
func commandLine(sim, agent, dns, listen, socket string, flags []string) []string {
	line := slices.Concat([]string{sim, "--churn", "2", "--command-log", "{tmp}/agent.log"}, flags,
		[]string{"--", agent, "run", "--clustermesh-config", "{dir}", "--dns", dns, "--xds", "unix:{tmp}/xds.sock"})
	if listen != "" {
		line = append(line, "--listen", listen)
	}
	if socket != "" {
		line = append(line, "--socket", socket)
	}
	return line
}

// New returns the command.
func New(c *command.Env) *cobra.Command {
	var dns, listen string
	cmd := &cobra.Command{
		Use:   "demo [-- FLAGS of mesh-sim]",
		Short: "Run an agent in a simulated mesh, to try mesh-agent",
		Long: "Run an agent in a simulated mesh, to try mesh-agent. The program mesh-sim (in the directory of this program, or in\n" +
			"the PATH) runs clusters whose contents change all the time, and the agent follows them. The command prints examples\n" +
			"of commands. Ctrl-C ends it and removes all its files. With --socket the agent uses that unix socket.\n\n" +
			"The flags after -- are flags of mesh-sim: see 'mesh-sim --help'.",
		Example: "  mesh-agent demo\n  mesh-agent demo -- --clusters 5 --nodes 20 --churn 50",
		Args: func(cmd *cobra.Command, args []string) error {
			if before := cmd.ArgsLenAtDash(); before != 0 && len(args) > 0 {
				return command.NoArgs(cmd, args)
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			sim, err := find(self)
			if err != nil {
				return err
			}
			line := commandLine(sim, self, dns, listen, c.Socket, args)
			// The simulator replaces this process, so that signals, the terminal and the exit code are those of the
			// simulator.
			return fmt.Errorf("%s: %w", sim, syscall.Exec(sim, line, c.Environ()))
		},
	}
	cmd.Flags().StringVar(&dns, "dns", "127.0.0.1:5300", "address of the agent's DNS server; empty: no server")
	cmd.Flags().StringVar(&listen, "listen", "", "address of the agent's HTTP API; default: "+api.DefaultListen)
	return cmd
}

// find returns the path of the simulator that belongs to this program, or of another one.
func find(self string) (string, error) {
	if real, err := filepath.EvalSymlinks(self); err == nil {
		self = real
	}
	beside := filepath.Join(filepath.Dir(self), simulator)
	info, err := os.Stat(beside)
	if err == nil && info.Mode().IsRegular() {
		return beside, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	found, err := exec.LookPath(simulator)
	if err != nil {
		return "", fmt.Errorf("%s is neither in the directory of %s nor in the PATH: it comes with the packages of mesh-agent, and 'make build' makes it", simulator, self)
	}
	return found, nil
}
