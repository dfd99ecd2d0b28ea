//go:build !before1.20

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/cilium/hive/cell"
	"github.com/spf13/pflag"

	"github.com/cilium/cilium/clustermesh-apiserver/syncstate"
	"github.com/cilium/cilium/pkg/clustermesh/clustercfg"
	cmtypes "github.com/cilium/cilium/pkg/clustermesh/types"
	"github.com/cilium/cilium/pkg/hive"
	identitycache "github.com/cilium/cilium/pkg/identity/cache"
	"github.com/cilium/cilium/pkg/ipcache"
	"github.com/cilium/cilium/pkg/kvstore"
	"github.com/cilium/cilium/pkg/kvstore/heartbeat"
	"github.com/cilium/cilium/pkg/kvstore/store"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// publish writes a cluster's state as the release's API server of a cluster mesh
// does, whose cells it is made of: those that need no Kubernetes.
type publish struct {
	log *slog.Logger

	mu     sync.Mutex
	hive   *hive.Hive // nil: not open
	stop   context.CancelFunc
	runs   sync.WaitGroup
	stores map[model.Kind]store.SyncStore
	synced map[model.Kind]func(context.Context)
}

func runPublish([]string) error {
	p := &publish{log: setLogger()}
	defer p.close()
	return serve(map[string]any{"Publish": p})
}

// Open connects to the etcd and publishes the cluster's configuration.
func (p *publish) Open(args model.PublishArgs, _ *struct{}) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hive != nil {
		return errors.New("it is open")
	}
	var ready parts
	h := hive.New(
		kvstore.Cell(kvstore.EtcdBackendName),
		store.Cell,
		syncstate.Cell,
		cell.Provide(
			func(s syncstate.SyncState) kvstore.ExtraOptions {
				return kvstore.ExtraOptions{BootstrapComplete: s.WaitChannel()}
			},
			func() cmtypes.ClusterInfo { return clusterInfo(args.Config) },
			func() cmtypes.CiliumClusterConfig { return newClusterConfig(args.Config).config },
		),
		heartbeat.Enabled,
		heartbeat.Cell,
		cell.Invoke(clustercfg.RegisterEnforcer),
		cell.Invoke(func(p parts) { ready = p }),
	)
	flags := pflag.NewFlagSet("publish", pflag.ContinueOnError)
	h.RegisterFlags(flags)
	if err := flags.Parse(args.Flags); err != nil {
		return err
	}
	if err := h.Start(p.log, context.Background()); err != nil {
		return err
	}
	p.hive = h
	p.run(args.Config.Cluster, ready)
	return nil
}

// parts are what the hive gives to the stores.
type parts struct {
	cell.In

	Client  kvstore.Client
	Factory store.Factory
	State   syncstate.SyncState
}

// run starts a store for each kind.
func (p *publish) run(cluster string, with parts) {
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	p.stores, p.synced = map[model.Kind]store.SyncStore{}, map[model.Kind]func(context.Context){}
	for _, k := range kinds() {
		if k.name == model.ClusterConfigs {
			continue
		}
		s := with.Factory.NewSyncStore(cluster, with.Client, k.prefix, storeOptions(k.name)...)
		p.stores[k.name] = s
		p.synced[k.name] = with.State.WaitForResource()
		p.runs.Go(func() { s.Run(ctx) })
	}
	with.State.Stop()
}

// storeOptions are those of the API server's stores.
func storeOptions(k model.Kind) []store.WSSOpt {
	switch k {
	case model.Identities:
		return []store.WSSOpt{store.WSSWithSyncedKeyOverride(identitycache.IdentitiesPath)}
	case model.Addresses:
		return []store.WSSOpt{store.WSSWithSyncedKeyOverride(ipcache.IPIdentitiesPath)}
	}
	return nil
}

// Put creates or updates objects.
func (p *publish) Put(objects model.Objects, _ *struct{}) error {
	return p.each(objects, func(s store.SyncStore, k store.Key) error {
		return s.UpsertKey(context.Background(), k)
	})
}

// Delete deletes objects, of which only the names matter.
func (p *publish) Delete(objects model.Objects, _ *struct{}) error {
	return p.each(objects, func(s store.SyncStore, k store.Key) error {
		return s.DeleteKey(context.Background(), k)
	})
}

func (p *publish) each(objects model.Objects, do func(store.SyncStore, store.Key) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range kinds() {
		for _, key := range k.encode(&objects) {
			s, ok := p.stores[k.name]
			if !ok {
				return fmt.Errorf("%s are not published by a store", k.name)
			}
			if err := do(s, key); err != nil {
				return err
			}
		}
	}
	return nil
}

// Synced marks kinds as complete: all their objects were put.
func (p *publish) Synced(names []model.Kind, _ *struct{}) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range names {
		s, ok := p.stores[k]
		if !ok {
			return fmt.Errorf("%s are not published by a store", k)
		}
		if err := s.Synced(context.Background(), p.synced[k]); err != nil {
			return err
		}
	}
	return nil
}

// Close ends publishing; the published keys stay until their leases expire.
func (p *publish) Close(struct{}, *struct{}) error { return p.close() }

func (p *publish) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hive == nil {
		return nil
	}
	p.stop()
	p.runs.Wait()
	err := p.hive.Stop(p.log, context.Background())
	p.hive = nil
	return err
}

func clusterInfo(c model.ClusterConfig) cmtypes.ClusterInfo {
	return cmtypes.ClusterInfo{ID: c.ID, Name: c.Cluster, MaxConnectedClusters: c.MaxConnectedClusters}
}
