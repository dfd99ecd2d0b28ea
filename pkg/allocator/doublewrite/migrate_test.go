package doublewrite_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/doublewrite"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/kvbackend"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/sessiontest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// The migration of the test has this many identities and nodes.
const (
	identities = 5000
	nodes      = 4
)

const newPaths wire.AllocationPaths = "cilium/state/identities/v2"

// text is a key that is just a text.
type text string

func (k text) GetKey() string                       { return string(k) }
func (k text) String() string                       { return string(k) }
func (k text) GetAsMap() map[string]string          { return nil }
func (text) PutKey(s string) (allocator.Key, error) { return text(s), nil }
func (text) PutKeyFromMap(map[string]string) (allocator.Key, error) {
	return nil, errors.ErrUnsupported
}

func keyNumber(i int) text { return text(fmt.Sprintf("k8s:n=%d;", i)) }

// node is an allocator and its session.
type node struct {
	*allocator.Allocator
	ended <-chan error
	stop  context.CancelFunc
}

// migration is the state of the test.
type migration struct {
	*testing.T
	server *etcdtest.Server

	mu      sync.Mutex
	numbers map[text]uint64 // of every key that was ever allocated
}

func (m *migration) backend(client *etcd.Session, paths wire.AllocationPaths, n int) allocator.Backend {
	m.Helper()
	b, err := kvbackend.New(client, kvbackend.Config{Paths: paths, Node: fmt.Sprint("10.0.0.", n), Keys: text("")})
	must(m, err)
	return b
}

// seed creates the identities. No node uses them yet.
func (m *migration) seed() {
	m.Helper()
	for from := 0; from < identities; from += 100 {
		var ops []clientv3.Op
		for i := from; i < from+100; i++ {
			id := uint64(131072 + 7*i)
			m.numbers[keyNumber(i)] = id
			ops = append(ops, clientv3.OpPut(wire.IdentityAllocation.Mapping(id), string(keyNumber(i))))
		}
		if _, err := m.server.Local().Txn(m.Context()).Then(ops...).Commit(); err != nil {
			m.Fatal(err)
		}
	}
}

// start starts the nodes, each with a backend from the given function.
func (m *migration) start(backend func(client *etcd.Session, n int) allocator.Backend) []*node {
	m.Helper()
	var all []*node
	for n := range nodes {
		a, err := allocator.NewAllocator(backend(sessiontest.Connect(m, m.server.Endpoint()), n),
			allocator.WithMin(131072), allocator.WithMax(196607), allocator.WithMasterKeyProtection(), allocator.WithSyncInterval(time.Minute))
		must(m, err)
		ctx, cancel := context.WithCancel(m.Context())
		ended := make(chan error, 1)
		go func() { ended <- a.Run(ctx) }()
		all = append(all, &node{a, ended, cancel})
		must(m, a.WaitForInitialSync(ctx))
	}
	return all
}

// stop stops the nodes; their references stay in the kvstore.
func (m *migration) stop(all []*node) {
	m.Helper()
	for _, n := range all {
		n.stop()
		if err := <-n.ended; !errors.Is(err, context.Canceled) {
			m.Error(err)
		}
	}
}

// allocate allocates a key and checks that its number has not changed.
func (m *migration) allocate(ctx context.Context, n *node, key text) error {
	id, _, _, err := n.Allocate(ctx, key)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if before, known := m.numbers[key]; known && before != id {
		return fmt.Errorf("%s was %d and is %d", key, before, id)
	}
	m.numbers[key] = id
	return nil
}

// each calls f for every key of a range, on the key's node, several at once.
func (m *migration) each(all []*node, from, to int, f func(ctx context.Context, n *node, key text) error) {
	m.Helper()
	g, ctx := errgroup.WithContext(m.Context())
	for i, n := range all {
		for part := range 4 {
			g.Go(func() error {
				for k := from + i + part*nodes; k < to; k += 4 * nodes {
					if err := f(ctx, n, keyNumber(k)); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	must(m, g.Wait())
}

func (m *migration) release(ctx context.Context, n *node, key text) error {
	_, err := n.Release(ctx, key)
	return err
}

// work allocates and releases keys until ctx ends: existing keys, used and unused, and new ones.
func (m *migration) work(ctx context.Context, all []*node) error {
	var g errgroup.Group
	for i, n := range all {
		rnd := rand.New(rand.NewPCG(1, uint64(i)))
		g.Go(func() error {
			for ctx.Err() == nil {
				key := keyNumber(rnd.IntN(identities * 11 / 10))
				// Use the test's context, not ctx, so that no allocation is cancelled: a cancelled one leaves keys on
				// one side, which only garbage collection removes.
				if err := m.allocate(m.Context(), n, key); err != nil {
					return err
				}
				if err := m.release(m.Context(), n, key); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// alike waits until both sides have the same contents, and returns the number of equal entries.
func (m *migration) alike(primary, secondary allocator.Backend) int {
	m.Helper()
	for {
		differences, alike, err := doublewrite.Compare(m.Context(), primary, secondary)
		if err == nil && len(differences) == 0 {
			return alike
		}
		if waiting.Sleep(m.Context(), 50*time.Millisecond) != nil {
			m.Fatalf("%d differences, %v: %v", len(differences), err, differences[:min(5, len(differences))])
		}
	}
}

// TestNumbersSurviveAMigration: 5,000 identities are copied to another prefix while four nodes work. In the end the
// nodes read them from there, with their numbers unchanged.
func TestNumbersSurviveAMigration(t *testing.T) {
	waittest.Long(t)
	t.Parallel()
	m := &migration{T: t, server: etcdtest.Start(t), numbers: make(map[text]uint64)}
	old := func(c *etcd.Session, n int) allocator.Backend { return m.backend(c, wire.IdentityAllocation, n) }
	both := func(read doublewrite.Side) func(c *etcd.Session, n int) allocator.Backend {
		return func(c *etcd.Session, n int) allocator.Backend {
			return doublewrite.New(m.backend(c, wire.IdentityAllocation, n), m.backend(c, newPaths, n), read, nil, nil)
		}
	}

	m.seed()
	before := m.start(old)
	m.each(before, 0, identities/20, m.allocate)
	m.stop(before) // as when the agent is updated

	during := m.start(both(doublewrite.Primary))
	m.each(during, 0, identities/20, m.allocate) // the other identities are not in use
	ctx, cancel := context.WithCancel(t.Context())
	worked := make(chan error, 1)
	go func() { worked <- m.work(ctx, during) }()
	admin := sessiontest.Connect(m, m.server.Endpoint())
	primary, secondary := m.backend(admin, wire.IdentityAllocation, 9), m.backend(admin, newPaths, 9)
	if _, err := doublewrite.Copy(t.Context(), primary, secondary); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-worked; err != nil {
		t.Error(err)
	}
	alike := m.alike(primary, secondary)
	m.stop(during)

	after := m.start(both(doublewrite.Secondary))
	m.each(after, 0, identities/20, m.allocate)
	m.mu.Lock()
	want := len(m.numbers)
	numbers := maps.Clone(m.numbers)
	m.mu.Unlock()
	if alike != want {
		t.Errorf("%d keys are alike on both sides, %d were allocated", alike, want)
	}
	for key, id := range numbers {
		if got, err := after[0].Get(t.Context(), key); err != nil || got != id {
			t.Fatalf("%s is %d on the secondary side, %v; it was %d", key, got, err, id)
		}
	}
	m.stop(after)
	t.Logf("%d identities migrated under their numbers", want)
}

var must = waittest.Must
