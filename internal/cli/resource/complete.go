package resource

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

// Completion must not keep a person waiting, nor an agent busy.
const (
	completionTimeout = time.Second
	completionLimit   = 1000 // names
)

// complete asks an agent for the names of a resource. Addresses and identities
// are too many for that.
func (res Kind[T]) complete(ctx context.Context, cl *client.Client, q client.Query) []string {
	if res.Plural == "ips" || res.Plural == "identities" {
		return nil
	}
	q.Limit = completionLimit
	list, err := client.List[T](ctx, cl, res.Plural, q)
	if err != nil {
		return nil
	}
	var names []string
	for item, err := range list.All(ctx) {
		if err != nil {
			return names
		}
		names = append(names, res.name(item))
	}
	return names
}

// CompleteObject completes RESOURCE [NAME].
func CompleteObject(c *command.Env) command.Completer {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		switch len(args) {
		case 0:
			return command.StartingWith(begun, Names()), command.NoFiles
		case 1:
			res, err := Find(args[0])
			if err != nil {
				return nil, command.NoFiles
			}
			return command.StartingWith(begun, askNames(c, cmd, res)), command.NoFiles
		}
		return nil, command.NoFiles
	}
}

// CompleteArgument completes the name of a cluster as the only argument.
func CompleteArgument(c *command.Env) command.Completer {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, command.NoFiles
		}
		return CompleteCluster(c)(cmd, args, begun)
	}
}

// CompleteCluster completes the name of a cluster.
func CompleteCluster(c *command.Env) command.Completer {
	return func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		clusters, err := Find("clusters")
		if err != nil {
			return nil, command.NoFiles
		}
		return command.StartingWith(begun, askNames(c, cmd, clusters)), command.NoFiles
	}
}

// askNames asks the agent that the command line chooses.
func askNames(c *command.Env, cmd *cobra.Command, res any) []string {
	named, ok := res.(interface {
		complete(context.Context, *client.Client, client.Query) []string
	})
	if !ok {
		return nil
	}
	cl, err := c.Connect(cmd)
	if err != nil {
		return nil
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
	defer cancel()
	return named.complete(ctx, cl, client.Query{})
}
