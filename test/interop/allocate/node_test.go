package allocate

import (
	"context"
	"errors"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/internal/own/identity"
	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/kvbackend"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/test/interop"
	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

const (
	paths     = wire.IdentityAllocation
	base      = string(paths)
	clusterID = 2
	leaseTTL  = 25 * time.Second // the shortest that both sides allow, and that of locks
	syncEvery = 10 * time.Second
)

// node is a node's allocator, Cilium's or ours.
type node interface {
	acquire(ctx context.Context, key string) (uint64, error)
	release(ctx context.Context, key string) error
	lock(ctx context.Context, key string) (unlock func(), err error)
	// gc and locksGC make a round of collection, which continues from the last one.
	gc(ctx context.Context) (deleted int, err error)
	locksGC(ctx context.Context) error
	// gone removes the node: Cilium's is killed, ours is cancelled.
	gone()
}

// theirs is a peer of Cilium.
type theirs struct {
	testing.TB
	*interop.Peer
}

func startTheirs(t testing.TB, endpoint, name string) *theirs {
	t.Helper()
	p := interop.Start(t, interop.Newest, "allocate")
	interop.Ask[struct{}](t, p, "Allocate.Open", model.AllocateOpen{
		Endpoint: endpoint, Node: name, ClusterID: clusterID, LeaseTTL: leaseTTL, Sync: syncEvery,
	})
	return &theirs{t, p}
}

func (n *theirs) acquire(ctx context.Context, key string) (uint64, error) {
	got, err := interop.Call[model.Allocated](ctx, n.Peer, "Allocate.Acquire", model.AllocateKey{Key: key})
	return got.ID, err
}

func (n *theirs) release(ctx context.Context, key string) error {
	_, err := interop.Call[model.Released](ctx, n.Peer, "Allocate.Release", model.AllocateKey{Key: key})
	return err
}

func (n *theirs) lock(ctx context.Context, key string) (func(), error) {
	_, err := interop.Call[struct{}](ctx, n.Peer, "Allocate.Lock", model.AllocateKey{Key: key})
	return func() {
		if _, err := interop.Call[struct{}](ctx, n.Peer, "Allocate.Unlock", model.AllocateKey{Key: key}); err != nil {
			n.Error(err)
		}
	}, err
}

func (n *theirs) gc(ctx context.Context) (int, error) {
	got, err := interop.Call[model.Collected](ctx, n.Peer, "Allocate.GC", struct{}{})
	return got.Deleted, err
}

func (n *theirs) locksGC(ctx context.Context) error {
	_, err := interop.Call[model.Locks](ctx, n.Peer, "Allocate.LocksGC", struct{}{})
	return err
}

func (n *theirs) gone() { n.Kill() }

// ours is an allocator in this process.
type ours struct {
	*allocator.Allocator
	backend *kvbackend.Backend
	cancel  context.CancelFunc
	ended   chan struct{}

	stale      allocator.StaleIDs
	staleLocks allocator.StaleLocks
}

func startOurs(t testing.TB, endpoint, name string) *ours {
	t.Helper()
	o := etcd.DefaultOptions()
	o.QPS, o.LeaseTTL, o.Leases = 0, leaseTTL, kvstore.NewLeases()
	client := etcd.NewDurable(func() (*clientfile.Config, error) { return clientfile.New(endpoint) }, o)
	backend, err := kvbackend.New(client, kvbackend.Config{Paths: paths, Node: name, Keys: identity.Key{}})
	interop.Must(t, err)
	n := &ours{backend: backend, ended: make(chan struct{})}
	n.Allocator, err = allocator.NewAllocator(backend, allocator.WithCluster(wire.Layout{}, clusterID),
		allocator.WithMasterKeyProtection(), allocator.WithSyncInterval(syncEvery))
	interop.Must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel = cancel
	go func() {
		defer close(n.ended)
		var g errgroup.Group
		g.Go(func() error { return client.Run(ctx) })
		g.Go(func() error { return n.Run(ctx) })
		_ = g.Wait() // both end with the context
		client.Close()
	}()
	t.Cleanup(n.gone)
	interop.Must(t, n.WaitForInitialSync(t.Context()))
	return n
}

func keyOf(text string) allocator.Key {
	key, err := identity.Key{}.PutKey(text)
	if err != nil {
		panic(err) // the test's own keys have labels
	}
	return key
}

func (n *ours) acquire(ctx context.Context, key string) (uint64, error) {
	id, _, _, err := n.Allocate(ctx, keyOf(key))
	return id, err
}

func (n *ours) release(ctx context.Context, key string) error {
	_, err := n.Release(ctx, keyOf(key))
	return err
}

func (n *ours) lock(ctx context.Context, key string) (func(), error) {
	lock, err := n.backend.Lock(ctx, keyOf(key))
	if err != nil {
		return nil, err
	}
	return lock.Unlock, nil
}

func (n *ours) gc(ctx context.Context) (int, error) {
	stale, stats, err := n.RunGC(ctx, nil, n.stale)
	n.stale = stale
	return stats.Deleted, err
}

func (n *ours) locksGC(ctx context.Context) (err error) {
	n.staleLocks, err = n.RunLocksGC(ctx, n.staleLocks)
	return err
}

func (n *ours) gone() {
	n.cancel()
	<-n.ended
}

// sides are the two sides of a node.
var sides = []string{"theirs", "ours"}

// start starts a node of the side.
func start(t testing.TB, side, endpoint, name string) node {
	t.Helper()
	if side == "theirs" {
		return startTheirs(t, endpoint, name)
	}
	return startOurs(t, endpoint, name)
}

// count returns how many keys there are below a part of the base.
func count(t testing.TB, client *clientv3.Client, part string) int64 {
	t.Helper()
	resp, err := client.Get(t.Context(), base+"/"+part, clientv3.WithPrefix(), clientv3.WithCountOnly())
	interop.Must(t, err)
	return resp.Count
}

// until waits for a condition.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	interop.Until(t, what, 90*time.Second, func(context.Context) error {
		if !ok() {
			return errors.New("it is not so")
		}
		return nil
	})
}
