package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mesh-agent/mesh-agent/internal/logging"
	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
)

// Completion must not keep a person waiting, nor an agent busy.
const (
	completionTimeout = time.Second
	completionLimit   = 1000 // names
)

// noFiles is the answer of every completion that is not about files.
const noFiles = cobra.ShellCompDirectiveNoFileComp

// completer completes one word, or one flag.
type completer func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)

// complete asks an agent for the names of a resource. Addresses and identities
// are too many for that.
func (res resource[T]) complete(ctx context.Context, cl *client.Client, q client.Query) []string {
	if res.plural == "ips" || res.plural == "identities" {
		return nil
	}
	q.Limit = completionLimit
	list, err := client.List[T](ctx, cl, res.plural, q)
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

// completeObject completes RESOURCE [NAME].
func (c *cli) completeObject(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return startingWith(begun, resourceNames()), noFiles
	case 1:
		res, err := findResource(args[0])
		if err != nil {
			return nil, noFiles
		}
		return startingWith(begun, c.askNames(cmd, res)), noFiles
	}
	return nil, noFiles
}

// completeArgument completes the name of a cluster as the only argument.
func (c *cli) completeArgument(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, noFiles
	}
	return c.completeCluster(cmd, args, begun)
}

// completeCluster completes the name of a cluster.
func (c *cli) completeCluster(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	clusters, err := findResource("clusters")
	if err != nil {
		return nil, noFiles
	}
	return startingWith(begun, c.askNames(cmd, clusters)), noFiles
}

// askNames asks the agent that the command line chooses.
func (c *cli) askNames(cmd *cobra.Command, res any) []string {
	named, ok := res.(interface {
		complete(context.Context, *client.Client, client.Query) []string
	})
	if !ok {
		return nil
	}
	cl, err := c.connect(cmd)
	if err != nil {
		return nil
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
	defer cancel()
	return named.complete(ctx, cl, client.Query{})
}

// completeClientFile completes the name of a cluster of the mesh directory.
func (c *cli) completeClientFile(s *settings) completer {
	return func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		settled, err := c.settle(cmd, s)
		if err != nil {
			return nil, noFiles
		}
		files, err := clustermesh.Files(settled.ClustermeshConfig)
		if err != nil {
			return nil, noFiles
		}
		return startingWith(begun, slices.Sorted(maps.Keys(files))), noFiles
	}
}

func startingWith(begun string, names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, begun) })
}

// completeFlags makes the values of a command's flags complete, and those of
// all commands below it.
func (c *cli) completeFlags(cmd *cobra.Command) {
	note := func(f *pflag.Flag) {
		var values []string
		switch format, isFormat := f.Value.(*printer.Format); {
		case isFormat:
			values = strings.Split(format.Type(), "|")
		case f.Name == "log-level":
			values = logging.Levels()
		case f.Name == "log-format":
			values = logging.Formats()
		default:
			return
		}
		// It fails for a flag that has one already, which then knows better.
		_ = cmd.RegisterFlagCompletionFunc(f.Name, func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
			return startingWith(begun, slices.Clone(values)), noFiles
		})
	}
	cmd.LocalFlags().VisitAll(note)
	for _, sub := range cmd.Commands() {
		c.completeFlags(sub)
	}
}
