//go:build !before1.20

package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cilium/cilium/pkg/allocator"
	"github.com/cilium/cilium/pkg/identity"
	"github.com/cilium/cilium/pkg/identity/cache"
	identitykey "github.com/cilium/cilium/pkg/identity/key"
	"github.com/cilium/cilium/pkg/idpool"
	"github.com/cilium/cilium/pkg/kvstore"
	kvallocator "github.com/cilium/cilium/pkg/kvstore/allocator"
	"github.com/cilium/cilium/pkg/option"
	"github.com/cilium/cilium/pkg/rate"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// allocate is the allocator of one node and, when it is asked to, the garbage
// collection of the operator.
type allocate struct {
	client    kvstore.BackendOperations
	backend   allocator.Backend
	allocator *allocator.Allocator
	limiter   *rate.Limiter

	mu        sync.Mutex
	held      map[string]kvstore.KVLocker
	stale     map[string]uint64
	staleLock map[string]kvstore.Value
}

func runAllocate([]string) error {
	return serve(map[string]any{"Allocate": &allocate{held: map[string]kvstore.KVLocker{}}})
}

// Open connects, and waits for the first list.
func (a *allocate) Open(args model.AllocateOpen, _ *struct{}) error {
	option.Config.AllocatorListTimeout = 3 * time.Minute // an agent's default
	log := newLogger()
	client, failed := kvstore.NewClient(context.Background(), log, kvstore.EtcdBackendName,
		map[string]string{kvstore.EtcdAddrOption: args.Endpoint, kvstore.EtcdRateLimitOption: "10000"},
		kvstore.ExtraOptions{LeaseTTL: args.LeaseTTL, MaxConsecutiveQuorumErrors: 2})
	if err := <-failed; err != nil {
		return err
	}
	backend, err := kvallocator.NewKVStoreBackend(log, kvallocator.KVStoreBackendConfiguration{
		BasePath: cache.IdentitiesPath, Suffix: args.Node, Typ: &identitykey.GlobalIdentity{}, Backend: client,
	})
	if err != nil {
		return err
	}
	events := make(allocator.AllocatorEventChan)
	go consume(events)
	options := []allocator.AllocatorOption{
		allocator.WithMin(idpool.ID(identity.GetMinimalAllocationIdentity(args.ClusterID))),
		allocator.WithMax(idpool.ID(identity.GetMaximumAllocationIdentity(args.ClusterID))),
		allocator.WithPrefixMask(idpool.ID(args.ClusterID << identity.GetClusterIDShift())),
		allocator.WithEvents(events), allocator.WithMasterKeyProtection(),
	}
	if args.Sync > 0 {
		options = append(options, allocator.WithSyncInterval(args.Sync))
	}
	a.client, a.backend = client, backend
	a.limiter = rate.NewLimiter(time.Minute, 2500) // an operator's default
	if a.allocator, err = allocator.NewAllocator(log, &identitykey.GlobalIdentity{}, backend, options...); err != nil {
		return err
	}
	return a.allocator.WaitForInitialSync(context.Background())
}

// consume is what an agent's selector cache does as far as the allocator knows.
func consume(events allocator.AllocatorEventRecvChan) {
	for e := range events {
		if e.Done != nil {
			close(e.Done)
		}
	}
}

func newKey(k model.AllocateKey) allocator.AllocatorKey {
	return (&identitykey.GlobalIdentity{}).PutKey(k.Key)
}

// Acquire allocates.
func (a *allocate) Acquire(k model.AllocateKey, reply *model.Allocated) error {
	id, isNew, firstUse, err := a.allocator.Allocate(context.Background(), newKey(k))
	*reply = model.Allocated{ID: uint64(id), IsNew: isNew, FirstUse: firstUse}
	return err
}

// Release gives a use back.
func (a *allocate) Release(k model.AllocateKey, reply *model.Released) (err error) {
	reply.LastUse, err = a.allocator.Release(context.Background(), newKey(k))
	return err
}

// Get asks the kvstore, not the cache.
func (a *allocate) Get(k model.AllocateKey, reply *model.Allocated) error {
	id, err := a.allocator.GetNoCache(context.Background(), newKey(k))
	reply.ID = uint64(id)
	return err
}

// Lock locks a key as an allocation does.
func (a *allocate) Lock(k model.AllocateKey, _ *struct{}) error {
	lock, err := a.backend.Lock(context.Background(), newKey(k))
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held[k.Key] = lock
	return nil
}

// Unlock is the reverse.
func (a *allocate) Unlock(k model.AllocateKey, _ *struct{}) error {
	a.mu.Lock()
	lock := a.held[k.Key]
	delete(a.held, k.Key)
	a.mu.Unlock()
	if lock == nil {
		return errors.New("the key is not locked here")
	}
	return lock.Unlock(context.Background())
}

// GC makes a round of garbage collection.
func (a *allocate) GC(_ struct{}, reply *model.Collected) error {
	stale, stats, err := a.allocator.RunGC(context.Background(), a.limiter, a.stale)
	if err != nil {
		return err
	}
	a.stale = stale
	*reply = model.Collected{Alive: stats.Alive, Deleted: stats.Deleted, Stale: slices.Sorted(maps.Keys(stale))}
	return nil
}

// LocksGC makes a round of the collection of stale locks.
func (a *allocate) LocksGC(_ struct{}, reply *model.Locks) error {
	held, err := a.allocator.RunLocksGC(context.Background(), a.staleLock)
	if err != nil {
		return err
	}
	a.staleLock = held
	reply.Held = slices.Sorted(maps.Keys(held))
	return nil
}

// Close ends the allocator. Its references end with their leases, which it revokes.
func (a *allocate) Close(struct{}, *struct{}) error {
	a.allocator.Delete()
	a.limiter.Stop()
	a.client.Close()
	return nil
}
