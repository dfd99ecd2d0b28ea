//go:build !before1.20

package main

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"

	"github.com/cilium/hive/cell"
	"github.com/cilium/statedb"

	"github.com/cilium/cilium/pkg/clustermesh"
	"github.com/cilium/cilium/pkg/clustermesh/common"
	cmtypes "github.com/cilium/cilium/pkg/clustermesh/types"
	"github.com/cilium/cilium/pkg/clustermesh/wait"
	"github.com/cilium/cilium/pkg/defaults"
	identitycache "github.com/cilium/cilium/pkg/identity/cache"
	"github.com/cilium/cilium/pkg/kvstore"
	"github.com/cilium/cilium/pkg/kvstore/store"
	"github.com/cilium/cilium/pkg/metrics"
	"github.com/cilium/cilium/pkg/option"
	"github.com/cilium/cilium/pkg/time"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// reader reads remote clusters as the release's agent does. It is made of the agent's
// parts: the cluster mesh with its clients, stores and watchers, and the identity
// allocator. Their results are kept in records.
type reader struct {
	log *slog.Logger

	mu         sync.Mutex
	mesh       *clustermesh.ClusterMesh // nil: not open
	lifecycle  *cell.DefaultLifecycle
	identities *identitycache.CachingIdentityAllocator
	records    *records
	watchers   *watchers
}

func runRead([]string) error {
	r := &reader{log: setLogger()}
	defer r.close()
	return serve(map[string]any{"Read": r})
}

// Open starts to read the clusters.
func (r *reader) Open(args model.ReadArgs, _ *struct{}) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mesh != nil {
		return errors.New("it is open")
	}
	local := cmtypes.ClusterInfo{ID: args.ClusterID, Name: args.Cluster, MaxConnectedClusters: args.MaxConnectedClusters}
	if err := errors.Join(local.InitClusterIDMax(), local.ValidateStrict()); err != nil {
		return err
	}
	option.Config.ClusterID, option.Config.ClusterName = local.ID, local.Name
	option.Config.IdentityAllocationMode = option.IdentityAllocationModeKVstore

	r.records = newRecords()
	r.identities = identitycache.NewCachingIdentityAllocator(r.log, owner{},
		identitycache.AllocatorConfig{Timeout: time.Minute, SyncInterval: time.Hour})
	<-r.identities.InitIdentityAllocator(nil, kvstore.NewInMemoryClient(statedb.New(), local.Name))

	r.lifecycle = &cell.DefaultLifecycle{}
	c := r.configuration(local, args)
	r.watchers = newWatchers(c.StoreFactory)
	c.ObserverFactories = r.watchers.factories()
	r.mesh = clustermesh.NewClusterMesh(r.lifecycle, c)
	return r.lifecycle.Start(r.log, context.Background())
}

func (r *reader) configuration(local cmtypes.ClusterInfo, args model.ReadArgs) clustermesh.Configuration {
	return clustermesh.Configuration{
		Config:              common.Config{ClusterMeshConfig: args.Dir},
		ServiceModeV2Config: cmtypes.DefaultServiceModeV2Config,
		TimeoutConfig:       wait.TimeoutConfigDefault,
		ClusterInfo:         local,
		RemoteClientFactory: common.DefaultRemoteClientFactory(kvstore.Config{
			KVStoreOpt:                        maps.Clone(args.Options),
			KVStoreLeaseTTL:                   defaults.KVstoreLeaseTTL,
			KVstoreMaxConsecutiveQuorumErrors: defaults.KVstoreMaxConsecutiveQuorumErrors,
		}),
		ServiceMerger:         r.records,
		NodeObserver:          r.records,
		RemoteIdentityWatcher: r.identities,
		IPCache:               r.records,
		// As in a mesh of few nodes, so that a test need not wait.
		ClusterSizeDependantInterval: func(base time.Duration) time.Duration { return base },
		ClusterIDsManager:            clustermesh.NewClusterMeshUsedIDs(local.ID),
		Metrics:                      clustermesh.NewMetrics(),
		CommonMetrics:                common.MetricsProvider(metrics.SubsystemClusterMesh)(),
		StoreFactory:                 store.NewFactory(r.log, store.MetricsProvider()),
		FeatureMetrics:               features{},
		Logger:                       r.log,
	}
}

// View tells the objects of a kind that the reader holds.
func (r *reader) View(kind model.Kind, reply *model.Objects) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.mesh == nil:
		return errors.New("it is not open")
	case kind == model.Identities:
		reply.Identities = remoteIdentities(r.identities)
		return nil
	}
	return errors.Join(r.records.collect(kind, reply), r.watchers.collect(kind, reply))
}

// Clusters returns the reader's status of the clusters.
func (r *reader) Clusters(_ struct{}, reply *[]model.RemoteCluster) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mesh == nil {
		return errors.New("it is not open")
	}
	for _, s := range r.mesh.Status().Clusters {
		cluster := model.RemoteCluster{
			Name: s.Name, Connected: s.Connected, Ready: s.Ready, Failures: s.NumFailures, Status: s.Status,
			Entries: map[model.Kind]int64{
				model.Nodes: s.NumNodes, model.Services: s.NumSharedServices,
				model.Identities: s.NumIdentities, model.Addresses: s.NumEndpoints,
			},
			Synced: map[model.Kind]bool{
				model.Nodes: s.Synced.Nodes, model.Services: s.Synced.Services,
				model.Identities: s.Synced.Identities, model.Addresses: s.Synced.Endpoints,
			},
		}
		if c := s.Config; c != nil && c.Retrieved {
			cluster.Config = &model.ClusterConfig{
				Cluster: s.Name, ID: uint32(c.ClusterID), SyncedCanaries: c.SyncCanaries, Cached: c.Kvstoremesh,
				ServiceExportsEnabled: c.ServiceExportsEnabled, EndpointSlicesExportMode: c.EndpointSlicesExportMode,
			}
		}
		r.watchers.status(s.Name, &cluster)
		*reply = append(*reply, cluster)
	}
	return nil
}

// Close ends reading.
func (r *reader) Close(struct{}, *struct{}) error { return r.close() }

func (r *reader) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mesh == nil {
		return nil
	}
	err := r.lifecycle.Stop(r.log, context.Background())
	r.identities.Close()
	r.mesh = nil
	return err
}
