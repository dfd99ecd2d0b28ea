// Package target chooses the kvstore of a command that needs no agent, and connects to it.
package target

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/base/natural"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Choice is the kvstore that the flags of a command choose.
type Choice struct {
	Settings *config.Settings
	Cluster  string // empty: the local kvstore
	Timeout  time.Duration
}

// Target is a kvstore that a command can connect to.
type Target struct {
	Name     string // for users
	Settings config.Config
	Cfg      *clientfile.Config
	Opts     etcd.Options
}

// Choose returns the chosen kvstore, with the settings of the connection.
func Choose(c *command.Env, cmd *cobra.Command, k *Choice) (*Target, error) {
	t, err := ChooseAny(c, cmd, k)
	if err == nil && t.Cfg == nil {
		err = exit.Usagef("which kvstore? Give --cluster NAME for that of a remote cluster, " +
			"or --kvstore-opt etcd.config=FILE or etcd.address=URL for the local one")
	}
	return t, err
}

// Asking returns the function of a command that uses the chosen kvstore.
func Asking(c *command.Env, k *Choice, ask func(cmd *cobra.Command, args []string, t *Target) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		t, err := Choose(c, cmd, k)
		if err != nil {
			return err
		}
		return ask(cmd, args, t)
	}
}

// ChooseAny is [Choose] for a command that may work without a kvstore: then Cfg is nil.
func ChooseAny(c *command.Env, cmd *cobra.Command, k *Choice) (*Target, error) {
	settings, err := c.Resolve(cmd, k.Settings)
	if err != nil {
		return nil, err
	}
	if k.Timeout <= 0 {
		return nil, exit.Usagef("--timeout: %s is not above zero", k.Timeout)
	}
	if err := k.Settings.Check(config.KVStoreFlag); err != nil {
		return nil, err
	}
	t := &Target{Name: "the local kvstore", Settings: settings, Opts: settings.KVStoreOptions()}
	t.Opts.Timings.Connect, t.Opts.Timings.Read, t.Opts.Timings.Probe = k.Timeout, k.Timeout, k.Timeout
	if k.Cluster != "" {
		t.Name = "cluster " + k.Cluster
		t.Cfg, err = clusterConfig(settings.ClustermeshConfig, k.Cluster)
		return t, err
	}
	if t.Cfg, err = t.Opts.Config(); err != nil {
		return nil, exit.Usagef("%s", printer.OneLine(err))
	}
	return t, nil
}

// Connect opens a session with the first endpoint that answers. The error has the errors of all endpoints.
func (t *Target) Connect(ctx context.Context) (kvstore.Session, error) {
	client, err := t.ConnectEtcd(ctx)
	if err != nil {
		return nil, err // not client, which would be a non-nil interface with a nil pointer
	}
	return client, nil
}

// Durable returns a writer that outlives its sessions.
func (t *Target) Durable() *kvstore.Durable {
	return etcd.NewDurable(func() (*clientfile.Config, error) { return t.Cfg, nil }, t.Opts)
}

// ConnectEtcd is [Target.Connect] for the administration of an etcd.
func (t *Target) ConnectEtcd(ctx context.Context) (*etcd.Session, error) {
	var failed kvErrors
	for attempt := range t.Cfg.Endpoints {
		client, err := etcd.Connect(ctx, t.Cfg, attempt, t.Opts)
		if err == nil {
			return client, nil
		}
		failed = append(failed, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, failed
}

// kvErrors is like [errors.Join], on one line.
type kvErrors []error

func (e kvErrors) Error() string { return printer.Join(e, "; ", printer.OneLine) }

func (e kvErrors) Unwrap() []error { return e }

// CompleteClientFile completes the name of a cluster of the mesh directory.
func CompleteClientFile(c *command.Env, s *config.Settings) command.Completer {
	return command.Complete(func(cmd *cobra.Command, _ []string) []string {
		settings, err := c.Resolve(cmd, s)
		if err != nil {
			return nil
		}
		files, _ := clustermesh.Files(settings.ClustermeshConfig)
		return slices.SortedFunc(maps.Keys(files), natural.Compare)
	})
}

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

// ClientFiles returns the client files of the mesh directory, by cluster.
func ClientFiles(dir string) (map[string]clustermesh.File, error) {
	files, err := clustermesh.Files(dir)
	if err != nil {
		return nil, exit.Usagef("%w; --clustermesh-config says where it is", err)
	}
	return files, nil
}

// NoClientFile returns the error that a cluster has no client file, with the clusters that have one.
func NoClientFile(dir, cluster string, files map[string]clustermesh.File) error {
	there := "none at all"
	if len(files) > 0 {
		there = printer.Some(slices.SortedFunc(maps.Keys(files), natural.Compare), 10)
	}
	return fmt.Errorf("there is no client file of the cluster %q in %s; there are: %s", cluster, dir, there)
}
