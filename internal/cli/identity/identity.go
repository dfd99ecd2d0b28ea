// Package identity manages the identities of a cluster, without an agent.
package identity

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/cli/target"
	"github.com/mesh-agent/mesh-agent/internal/own/identity"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// New returns the command.
func New(c *command.Env) *cobra.Command {
	k := &target.Choice{Settings: config.NewSettings()}
	cmd := command.Group("identity", "Manage the identities in a kvstore, without a running agent",
		identityListCommand(c, k), identityAllocateCommand(c, k), identityReleaseCommand(c, k), identityDeleteCommand(c, k), identityGCCommand(c, k), identityCheckCommand(c, k), identityHealCommand(c, k), identityCompareCommand(c, k))
	cmd.Long = "Manage the identities of a cluster in its kvstore, without a running agent: the numbers, their labels, and the nodes\n" +
		"that use them. --kvstore-opt names the kvstore of the own cluster. --cluster reads from a remote cluster, with its\n" +
		"client file in the mesh directory.\n\n" +
		"Exit code 0: success. 1: there are findings. 2: wrong usage, or the kvstore does not answer."
	f := cmd.PersistentFlags()
	k.Settings.Register(f, "clustermesh-config", "kvstore-opt", "cluster-name", "cluster-id", "max-connected-clusters", "cluster-size",
		"node-ip", "kvstore-connectivity-timeout", "kvstore-lease-ttl", "kvstore-periodic-sync", config.AllocationMode, "k8s-namespace", "kubernetes", "kubeconfig")
	f.StringVar(&k.Cluster, "cluster", "", "read the kvstore of this remote cluster")
	f.DurationVar(&k.Timeout, "timeout", 10*time.Second, "time limit for each endpoint, and for each answer")
	_ = cmd.RegisterFlagCompletionFunc("cluster", target.CompleteClientFile(c, k.Settings)) // the flag is there
	return cmd
}

// identities is a kvstore whose identities are read.
type identities struct {
	*target.Target
	client  kvstore.Session
	cluster identity.Owner
	place   identity.Place
	cached  bool   // it is the copy of a mirror
	close   func() // ends the session
}

// reading returns the function of a command that reads the identities of any cluster.
func reading(c *command.Env, k *target.Choice, f func(cmd *cobra.Command, args []string, i *identities) error) func(*cobra.Command, []string) error {
	return target.Asking(c, k, func(cmd *cobra.Command, args []string, t *target.Target) error {
		i, err := open(cmd.Context(), t, k)
		if err != nil {
			return err
		}
		defer i.close()
		return f(cmd, args, i)
	})
}

// writing is [reading] for a command that writes: only the own cluster is allowed.
func writing(c *command.Env, k *target.Choice, f func(cmd *cobra.Command, args []string, i *identities) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := local(k); err != nil {
			return err
		}
		return reading(c, k, f)(cmd, args)
	}
}

// open connects to a kvstore and determines its cluster. The locks that a command takes are kept until the caller
// closes it, however long the command runs.
func open(ctx context.Context, t *target.Target, k *target.Choice) (*identities, error) {
	own, err := ownCluster(t, k)
	if err != nil {
		return nil, err
	}
	client, err := t.ConnectEtcd(ctx)
	if err != nil {
		return nil, err
	}
	i := &identities{Target: t, client: client, cluster: own, place: identity.OwnPlace(), close: keepLeases(ctx, client)}
	if k.Cluster != "" {
		err = i.remote(ctx, k.Cluster)
	}
	if err != nil {
		i.close()
		return nil, err
	}
	return i, nil
}

// leaseKeeper is a session that keeps its leases alive on request.
type leaseKeeper interface {
	Keep(ctx context.Context) error
	Close()
}

// keepLeases keeps the leases of a session alive. closeAll ends that, and closes the session.
func keepLeases(ctx context.Context, client leaseKeeper) (closeAll func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // an interrupted command releases its locks first
	var keeping sync.WaitGroup
	keeping.Go(func() { _ = client.Keep(ctx) }) // it ends with its context
	return func() {
		cancel()
		keeping.Wait()
		client.Close()
	}
}

func ownCluster(t *target.Target, k *target.Choice) (identity.Owner, error) {
	err := k.Settings.Check("max-connected-clusters")
	if k.Cluster == "" {
		err = k.Settings.Check(config.OwnFlags()...)
	}
	return identity.Owner{Name: t.Settings.ClusterName, ID: t.Settings.ClusterID, Layout: t.Settings.Layout}, err
}

func (i *identities) remote(ctx context.Context, name string) error {
	key := wire.ClusterConfigKey(name)
	kv, _, err := i.client.Get(ctx, key)
	switch {
	case err != nil:
		return err
	case kv == nil:
		return fmt.Errorf("cluster %s has no configuration %s, so the range of its identities is not known", name, key)
	}
	config, err := wire.DecodeClusterConfig(kv.Value)
	if err != nil {
		return fmt.Errorf("the configuration %s of cluster %s: %w", key, name, err)
	}
	layout, err := wire.NewLayout(cmp.Or(config.Capabilities.MaxConnectedClusters, wire.MaxConnectedClusters255))
	if err == nil {
		err = layout.ValidateClusterID(config.ID)
	}
	if err != nil {
		return fmt.Errorf("the configuration %s of cluster %s: %w", key, name, err)
	}
	i.cluster = identity.Owner{Name: name, ID: config.ID, Layout: layout}
	if i.cached = config.Capabilities.Cached; i.cached {
		i.place = identity.CachedPlace(name)
	}
	return nil
}
