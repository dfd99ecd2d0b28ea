package target

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/exit"
	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// CompleteClientFile completes the name of a cluster of the mesh directory.
func CompleteClientFile(c *command.Env, s *config.Settings) command.Completer {
	return func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		settled, err := c.Settle(cmd, s)
		if err != nil {
			return nil, command.NoFiles
		}
		files, err := clustermesh.Files(settled.ClustermeshConfig)
		if err != nil {
			return nil, command.NoFiles
		}
		return command.StartingWith(begun, slices.Sorted(maps.Keys(files))), command.NoFiles
	}
}

// clusterConfig reads the client file of a cluster in the mesh directory.
func clusterConfig(dir, cluster string) (*clientfile.Config, error) {
	if err := wire.ValidateClusterName(cluster); err != nil {
		return nil, exit.Usagef("--cluster: %q %w", cluster, err)
	}
	files, err := ClientFiles(dir)
	if err != nil {
		return nil, err
	}
	file, ok := files[cluster]
	if !ok {
		return nil, NoClientFile(dir, cluster, files)
	}
	cfg, err := clientfile.Load(file.Path)
	if err != nil {
		return nil, exit.Usagef("%s; 'mesh-agent config check' says more", printer.OneLine(err))
	}
	return cfg, nil
}

// ClientFiles are those of the mesh directory, by cluster.
func ClientFiles(dir string) (map[string]clustermesh.File, error) {
	files, err := clustermesh.Files(dir)
	if err != nil {
		return nil, exit.Usagef("%w; --clustermesh-config says where it is", err)
	}
	return files, nil
}

// NoClientFile says that a cluster has none, and which have.
func NoClientFile(dir, cluster string, files map[string]clustermesh.File) error {
	there := "none at all"
	if len(files) > 0 {
		there = printer.Some(slices.Sorted(maps.Keys(files)), 10)
	}
	return fmt.Errorf("there is no client file of the cluster %q in %s; there are: %s", cluster, dir, there)
}
