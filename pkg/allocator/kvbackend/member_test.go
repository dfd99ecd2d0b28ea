package kvbackend_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/kvbackend"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
)

// member is one node: an allocator with a kvstore of its own, which may be faulty and may be killed.
type member struct {
	*allocator.Allocator
	name  string
	cable *cable
	hook  atomic.Pointer[func(point string) error]
	stop  context.CancelFunc
	ended chan struct{}
}

// fault sets the hook that is called at each point from now on.
func (m *member) fault(hook func(point string) error) { m.hook.Store(&hook) }

// kill stops the node as kill -9 does: it releases nothing, and its requests no longer reach the kvstore.
func (m *member) kill() {
	m.cable.sever()
	m.stop()
}

// gone waits until the node has ended completely.
func (m *member) gone() { <-m.ended }

func noFault(string) error { return nil }

// join starts a node. It is stopped at the end of the test.
func join(t *testing.T, endpoint, name string, opts ...allocator.Option) *member {
	t.Helper()
	return joinFor(t, endpoint, name, leaseTTL, lockTTL, opts...)
}

// joinForGood is join with leases long enough not to end on a slow machine.
func joinForGood(t *testing.T, endpoint, name string, opts ...allocator.Option) *member {
	t.Helper()
	return joinFor(t, endpoint, name, 0, 0, opts...)
}

func joinFor(t *testing.T, endpoint, name string, lease, lock time.Duration, opts ...allocator.Option) *member {
	t.Helper()
	m := &member{name: name, cable: &cable{}, ended: make(chan struct{})}
	m.fault(noFault)
	o := etcd.DefaultOptions()
	o.QPS, o.BootstrapQPS, o.MaxInflight = 0, 0, 0
	o.LeaseTTL, o.LockTTL, o.NoLockQuorumCheck = lease, lock, true
	o.Timings.Close = 100 * time.Millisecond
	o.Timings.BackoffMax = 200 * time.Millisecond
	o.Dial = m.cable.dial
	client := etcd.NewDurable(func() (*clientfile.Config, error) { return clientfile.New(endpoint) }, o)
	b, err := kvbackend.New(&faulty{client, func(p string) error { return (*m.hook.Load())(p) }},
		kvbackend.Config{Paths: paths, Node: name, Keys: text("")})
	must(t, err)
	m.Allocator, err = allocator.NewAllocator(b, append([]allocator.Option{
		allocator.WithMin(firstID), allocator.WithMax(lastID), allocator.WithMasterKeyProtection(), allocator.WithSyncInterval(10 * time.Second),
	}, opts...)...)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	m.stop = cancel
	go func() {
		defer close(m.ended)
		var g errgroup.Group
		g.Go(func() error { return client.Run(ctx) })
		g.Go(func() error { return m.Run(ctx) })
		_ = g.Wait() // both end with the context
		client.Close()
	}()
	t.Cleanup(func() {
		m.stop()
		m.gone()
	})
	must(t, m.WaitForInitialSync(t.Context()))
	return m
}

// count returns the number of keys below a part of the base.
func count(t *testing.T, client *clientv3.Client, part string) int64 {
	t.Helper()
	resp, err := client.Get(t.Context(), base+"/"+part+"/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	must(t, err)
	return resp.Count
}

// points runs an allocation and a release, and returns the points that they pass.
func points(t *testing.T, endpoint string) []string {
	t.Helper()
	m := joinForGood(t, endpoint, "10.0.9.9")
	var mu sync.Mutex
	var passed []string
	m.fault(func(point string) error {
		mu.Lock()
		defer mu.Unlock()
		passed = append(passed, point)
		return nil
	})
	if _, _, _, err := m.Allocate(t.Context(), text("k8s:points=1;")); err != nil {
		t.Fatal(err)
	}
	m.fault(noFault)
	mu.Lock()
	defer mu.Unlock()
	passed = slices.Clone(passed)
	if len(passed) < 8 {
		t.Fatalf("an allocation passes only %q", passed)
	}
	return passed
}
