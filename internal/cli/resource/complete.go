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
func (res Kind[T]) complete(ctx context.Context, cl *client.Client) []string {
	if res.Plural == "ips" || res.Plural == "identities" {
		return nil
	}
	var names []string
	// Of an answer that breaks off, what came is offered.
	_, _ = each(ctx, cl, res.Plural, client.Query{Limit: completionLimit}, func(v T) { names = append(names, res.name(v)) })
	return names
}

// CompleteObject completes RESOURCE [NAME].
func CompleteObject(c *command.Env) command.Completer {
	return command.Complete(func(cmd *cobra.Command, args []string) []string {
		switch len(args) {
		case 0:
			return Names()
		case 1:
			return askNames(c, cmd, args[0])
		}
		return nil
	})
}

// CompleteArgument completes the name of a cluster as the only argument.
func CompleteArgument(c *command.Env) command.Completer {
	return command.Complete(func(cmd *cobra.Command, args []string) []string {
		if len(args) > 0 {
			return nil
		}
		return askNames(c, cmd, "clusters")
	})
}

// CompleteCluster completes the name of a cluster.
func CompleteCluster(c *command.Env) command.Completer {
	return command.Complete(func(cmd *cobra.Command, _ []string) []string { return askNames(c, cmd, "clusters") })
}

func askNames(c *command.Env, cmd *cobra.Command, resource string) []string {
	res, err := Find(resource)
	if err != nil {
		return nil
	}
	cl, err := c.Connect(cmd)
	if err != nil {
		return nil
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
	defer cancel()
	return res.complete(ctx, cl)
}
