package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/pkg/identity"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

func (c *cli) identityCommand() *cobra.Command {
	k := &kvChoice{settings: newSettings()}
	cmd := group("identity", "Look after the identities in a kvstore, without a running agent",
		c.identityListCommand(k), c.identityAllocateCommand(k), c.identityReleaseCommand(k), c.identityDeleteCommand(k), c.identityGCCommand(k), c.identityCheckCommand(k), c.identityHealCommand(k), c.identityCompareCommand(k))
	cmd.Long = "Look after the identities of a cluster, in its kvstore and without a running agent: the numbers, the labels that\n" +
		"they stand for, and the nodes that use them. It is the own cluster's, by --kvstore-opt, or to read from that of\n" +
		"--cluster, by its client file in the mesh directory.\n\n" +
		"Exit code 0: there is an answer. 1: it is not a good one. 2: wrong usage, or the kvstore does not answer."
	f := cmd.PersistentFlags()
	k.settings.register(f, "clustermesh-config", "kvstore-opt", "cluster-name", "cluster-id", "max-connected-clusters", clusterSizeFlag,
		"node-ip", "kvstore-connectivity-timeout", "kvstore-lease-ttl", "kvstore-periodic-sync", allocationMode, "k8s-namespace", "kubernetes", "kubeconfig")
	f.StringVar(&k.cluster, "cluster", "", "read the kvstore of this remote cluster")
	f.DurationVar(&k.timeout, "timeout", 10*time.Second, "how long to wait for each endpoint, and for each answer")
	_ = cmd.RegisterFlagCompletionFunc("cluster", c.completeClientFile(k.settings)) // the flag is there
	return cmd
}

// identities is a kvstore whose identities are looked at.
type identities struct {
	*kvTarget
	client  *etcd.Session
	cluster identity.Cluster
	place   identity.Place
	cached  bool // it is a mirror's copy
}

// identities connects to the kvstore that is meant and finds out whose it is.
// The caller closes the client.
func (c *cli) identities(cmd *cobra.Command, k *kvChoice) (*identities, error) {
	t, err := c.target(cmd, k)
	if err != nil {
		return nil, err
	}
	return t.identities(cmd.Context(), k)
}

func (t *kvTarget) identities(ctx context.Context, k *kvChoice) (*identities, error) {
	own, err := t.ownCluster(k)
	if err != nil {
		return nil, err
	}
	client, err := t.connect(ctx)
	if err != nil {
		return nil, err
	}
	i := &identities{kvTarget: t, client: client, cluster: own, place: identity.OwnPlace()}
	if k.cluster != "" {
		err = i.remote(ctx, k.cluster)
	}
	if err != nil {
		client.Close()
		return nil, err
	}
	return i, nil
}

// ownCluster is the cluster of the settings.
func (t *kvTarget) ownCluster(k *kvChoice) (identity.Cluster, error) {
	if k.cluster == "" {
		if err := k.settings.validateOwn(t.settled); err != nil {
			return identity.Cluster{}, err
		}
	}
	layout, err := wire.NewLayout(t.settled.MaxConnectedClusters)
	if err != nil {
		return identity.Cluster{}, usagef("%w", err)
	}
	return identity.Cluster{Name: t.settled.ClusterName, ID: t.settled.ClusterID, Layout: layout}, nil
}

// remote reads what a remote cluster says of itself.
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
	i.cluster = identity.Cluster{Name: name, ID: config.ID, Layout: layout}
	if i.cached = config.Capabilities.Cached; i.cached {
		i.place = identity.CachedPlace(name)
	}
	return nil
}
