//go:build !before1.20

package main

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/cilium/cilium/pkg/clustermesh/observer"
	cmtypes "github.com/cilium/cilium/pkg/clustermesh/types"
	"github.com/cilium/cilium/pkg/kvstore"
	"github.com/cilium/cilium/pkg/kvstore/store"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// watchers watch, on the connections of a reader, the kinds that an agent does not
// read by default: endpoint slices, and service exports, which the operator reads.
type watchers struct {
	stores store.Factory

	mu  sync.Mutex
	all []*watcher
}

func newWatchers(stores store.Factory) *watchers { return &watchers{stores: stores} }

func (w *watchers) factories() []observer.Factory {
	return []observer.Factory{
		w.factory(endpointSlices(), func(c cmtypes.CiliumClusterConfigCapabilities) bool {
			return c.EndpointSlicesExportMode != cmtypes.EndpointSlicesExportModeServicesOnly
		}),
		w.factory(serviceExports(), func(c cmtypes.CiliumClusterConfigCapabilities) bool {
			return c.ServiceExportsEnabled != nil
		}),
	}
}

func (w *watchers) factory(k kind, has func(cmtypes.CiliumClusterConfigCapabilities) bool) observer.Factory {
	return func(cluster string, onSync func()) observer.Observer {
		one := &watcher{observed: observe(k), cluster: cluster, has: has, onSync: onSync}
		one.store = w.stores.NewWatchStore(cluster,
			func() store.Key { return k.creator(one.expect())() },
			one, store.RWSWithOnSyncCallback(func(context.Context) { onSync() }))
		w.mu.Lock()
		defer w.mu.Unlock()
		w.all = append(w.all, one)
		return one
	}
}

// collect adds the watched objects of a kind.
func (w *watchers) collect(k model.Kind, into *model.Objects) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.all {
		if one.kind.name != k {
			continue
		}
		if err := one.collect(one.expect(), into); err != nil {
			return err
		}
	}
	return nil
}

// status adds the number of entries and the sync state of a cluster's watchers.
func (w *watchers) status(cluster string, into *model.RemoteCluster) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.all {
		if one.cluster == cluster && one.enabled.Load() {
			into.Entries[one.kind.name] = int64(one.store.NumEntries())
			into.Synced[one.kind.name] = one.store.Synced()
		}
	}
}

// watcher watches objects of one kind of one cluster.
type watcher struct {
	*observed
	cluster string
	has     func(cmtypes.CiliumClusterConfigCapabilities) bool
	onSync  func()
	store   store.WatchStore
	id      atomic.Uint32 // of the cluster
	enabled atomic.Bool
}

// expect is the name and ID of the cluster whose objects are watched.
func (w *watcher) expect() model.Expect {
	return model.Expect{Cluster: w.cluster, ClusterID: w.id.Load()}
}

func (w *watcher) Name() observer.Name { return observer.Name("test of " + w.kind.name) }

func (w *watcher) Status() observer.Status {
	return observer.Status{Enabled: w.enabled.Load(), Synced: w.store.Synced(), Entries: w.store.NumEntries()}
}

func (w *watcher) Register(m store.WatchStoreManager, backend kvstore.BackendOperations, c cmtypes.CiliumClusterConfig) {
	w.id.Store(c.ID)
	w.enabled.Store(w.has(c.Capabilities))
	if !w.enabled.Load() {
		w.store.Drain()
		w.onSync()
		return
	}
	prefix := w.kind.prefix
	if c.Capabilities.Cached {
		prefix = kvstore.StateToCachePrefix(prefix)
	}
	m.Register(prefix, func(ctx context.Context) {
		w.store.Watch(ctx, backend, kvstore.JoinKey(prefix, w.cluster))
	})
}

func (w *watcher) Drain()  { w.store.Drain() }
func (w *watcher) Revoke() { w.store.Drain() }
