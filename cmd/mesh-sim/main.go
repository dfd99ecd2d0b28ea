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
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/mesh-agent/mesh-agent/simtest/sim/command"
)

func main() { os.Exit(run(os.Args[1:])) }

// run returns the exit code.
func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	cmd := command.New()
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mesh-sim: "+strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return command.ExitCode(err)
}
