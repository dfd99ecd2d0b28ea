//go:build before1.20

package main

import (
	"context"
	"errors"

	"github.com/cilium/cilium/pkg/identity/cache"
	"github.com/cilium/cilium/pkg/ipcache"
	"github.com/cilium/cilium/pkg/kvstore"
	"github.com/cilium/cilium/pkg/kvstore/store"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// watch reads a cluster with the release's stores, one for each kind, over the
// release's own client of an etcd.
type watch struct{ watched []*watched }

func runWatch([]string) error { return serve(map[string]any{"Watch": &watch{}}) }

// Open connects, and watches each kind until the peer ends.
func (w *watch) Open(args model.WatchArgs, _ *struct{}) error {
	ctx := context.Background()
	client, err := connect(ctx, args)
	if err != nil {
		return err
	}
	stores := newStores()
	for _, k := range kinds() {
		if k.name == model.ClusterConfigs { // which are read once, not watched
			continue
		}
		one := &watched{observed: observe(k), expect: args.Expect}
		one.store = stores.NewWatchStore(args.Expect.Cluster, k.creator(args.Expect), one)
		w.watched = append(w.watched, one)
		prefix := k.dir(args.Expect.Cluster)
		if args.Cached {
			prefix = k.cachedDir(args.Expect.Cluster)
		}
		go one.store.Watch(ctx, client, prefix)
	}
	return nil
}

// connect waits until the client is connected.
func connect(ctx context.Context, args model.WatchArgs) (kvstore.BackendOperations, error) {
	client, failed := newClient(ctx, map[string]string{"etcd.config": args.File}, kvstore.ExtraOptions{
		NoLockQuorumCheck: true, ClusterName: args.Expect.Cluster, NoEndpointStatusChecks: true,
	})
	if err, ok := <-failed; ok && err != nil {
		return nil, err
	}
	if client == nil {
		return nil, errors.New("there is no client")
	}
	return client, nil
}

// cachedDir is dir in the etcd of a mirror, see the watchers of packages ipcache and allocator.
func (k kind) cachedDir(cluster string) string {
	switch k.name {
	case model.Addresses:
		return kvstore.StateToCachePrefix(ipcache.IPIdentitiesPath) + "/" + cluster
	case model.Identities:
		return kvstore.StateToCachePrefix(cache.IdentitiesPath) + "/" + cluster + "/id"
	default:
		return kvstore.StateToCachePrefix(k.dir(cluster))
	}
}

// Count returns the number of present objects.
func (w *watch) Count(_ struct{}, reply *model.WatchCountReply) error {
	for _, one := range w.watched {
		one.mu.Lock()
		reply.Objects += len(one.keys)
		one.mu.Unlock()
	}
	return nil
}

// View returns the present objects.
func (w *watch) View(_ struct{}, reply *model.WatchReply) error {
	for _, one := range w.watched {
		if one.store.Synced() {
			reply.Synced = append(reply.Synced, one.kind.name)
		}
		if err := one.collect(one.expect, &reply.Objects); err != nil {
			return err
		}
	}
	return nil
}

// watched has the known objects of one kind.
type watched struct {
	*observed
	expect model.Expect
	store  store.WatchStore
}
