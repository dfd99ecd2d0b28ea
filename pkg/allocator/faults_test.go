package allocator

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// world is a store with several nodes, whose calls are slow and fail, and the IDs that users of the nodes hold.
type world struct {
	t     *testing.T
	store *memoryStore
	nodes int
	keys  int
	max   uint64

	mu   sync.Mutex
	rand *rand.Rand                   // for the faults
	held map[string]map[string]uint64 // by key and node
	calm bool                         // no more faults
}

func newWorld(t *testing.T, seed uint64, nodes, keys int, highest uint64) *world {
	return &world{
		t: t, store: newMemoryStore(), nodes: nodes, keys: keys, max: highest,
		rand: rand.New(rand.NewPCG(seed, 0)), held: make(map[string]map[string]uint64),
	}
}

// fault delays every call. Now and then it makes a call fail, before or after it took effect, or releases a lock.
func (w *world) fault(ctx context.Context, _ string, _ bool) error {
	w.mu.Lock()
	delay, dice := time.Duration(w.rand.IntN(50))*time.Millisecond, w.rand.IntN(100)
	if w.calm {
		delay, dice = 0, 100
	} else if dice == 0 {
		delay = 20 * time.Second
	}
	w.mu.Unlock()
	if dice == 1 {
		w.endLock()
	}
	select {
	case <-time.After(delay):
	case <-ctx.Done():
		return ctx.Err()
	}
	if dice >= 2 && dice < 8 {
		return errAway
	}
	return nil
}

// endLock releases one of the locks, as if its lease had ended.
func (w *world) endLock() {
	w.store.mu.Lock()
	var holder *memoryLock
	for _, q := range w.store.locks {
		if q.holder != nil {
			holder = q.holder
		}
	}
	w.store.mu.Unlock()
	if holder != nil {
		holder.Unlock()
	}
}

// hold records that a node got the ID, and checks that this is allowed.
func (w *world) hold(node, text string, id uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held[text] == nil {
		w.held[text] = make(map[string]uint64)
	}
	w.held[text][node] = id
	for other, nodes := range w.held {
		for by, has := range nodes {
			if (other == text) != (has == id) {
				w.t.Errorf("%s got %d for %s, and %s has %d for %s", node, id, text, by, has, other)
			}
		}
	}
}

func (w *world) letGo(node, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.held[text], node)
}

// live allocates and releases at random; what it holds at the end stays allocated.
func (w *world) live(a *Allocator, node string, seed uint64, steps int) {
	random := rand.New(rand.NewPCG(seed, 1))
	has := make(map[string]bool)
	for range steps {
		text := fmt.Sprint("key", random.IntN(w.keys))
		if has[text] {
			w.letGo(node, text)
			if _, err := a.Release(context.Background(), textKey(text)); err != nil {
				w.t.Error(err)
			}
			delete(has, text)
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+random.IntN(300))*100*time.Millisecond)
		id, _, _, err := a.Allocate(ctx, textKey(text))
		cancel()
		switch {
		case err == nil:
			w.hold(node, text, id)
			has[text] = true
		case !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, errAway) && !errors.Is(err, errLost):
			w.t.Error(err)
		}
	}
}

// collect deletes unreferenced mappings, under the keys' locks.
func (w *world) collect(ctx context.Context) {
	for ctx.Err() == nil {
		w.store.mu.Lock()
		var texts []string
		for _, text := range w.store.mappings {
			texts = append(texts, text)
		}
		w.store.mu.Unlock()
		for _, text := range texts {
			lock, err := w.store.backend("gc").Lock(ctx, textKey(text))
			if err != nil {
				return
			}
			w.store.behind(func() {
				for id, has := range w.store.mappings {
					if has == text && len(w.store.refs[text]) == 0 && w.store.holds(lock) == nil {
						w.store.set(id, "")
					}
				}
			})
			lock.Unlock()
		}
		<-time.After(3 * time.Second)
	}
}

// vandalise deletes and alters mappings at random, also those in use.
func (w *world) vandalise(ctx context.Context, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 2))
	for ctx.Err() == nil {
		w.store.behind(func() {
			for id, text := range w.store.mappings {
				if random.IntN(2) == 0 && text != "vandalised" {
					w.store.set(id, "vandalised")
				} else {
					w.store.set(id, "")
				}
				break
			}
		})
		<-time.After(time.Second)
	}
}

// endure runs all nodes, and the function beside at the same time, until no more faults occur and the nodes are
// at rest.
func (w *world) endure(seed uint64, steps int, beside func(context.Context)) []*Allocator {
	allocators := make([]*Allocator, w.nodes)
	var lives, others sync.WaitGroup
	for n := range allocators {
		node := fmt.Sprint("node", n)
		b := w.store.backend(node)
		b.setFault(func(ctx context.Context, op string, after bool) error {
			if op == "list" {
				return nil
			}
			return w.fault(ctx, op, after)
		})
		allocators[n] = running(w.t, b, WithMax(w.max), WithMasterKeyProtection())
		lives.Go(func() { w.live(allocators[n], node, seed<<8+uint64(n), steps) })
	}
	ctx, cancel := context.WithCancel(context.Background())
	others.Go(func() { beside(ctx) })
	lives.Wait()
	cancel()
	others.Wait()
	w.mu.Lock()
	w.calm = true
	w.mu.Unlock()
	<-time.After(10 * time.Minute) // two refreshes
	synctest.Wait()
	return allocators
}

// checkContents checks that the store contains exactly the held IDs, and that each pool has exactly the free IDs.
func (w *world) checkContents(allocators []*Allocator) {
	w.store.rightly(w.t)
	for text, nodes := range w.held {
		for node, id := range nodes {
			if w.store.mappings[id] != text || w.store.refs[text][node] != id {
				w.t.Errorf("%s holds %d for %s; the mapping says %q, its reference %d", node, id, text, w.store.mappings[id], w.store.refs[text][node])
			}
		}
		if len(w.store.refs[text]) != len(nodes) {
			w.t.Errorf("%s is held by %v, the references are %v", text, nodes, w.store.refs[text])
		}
	}
	for n, a := range allocators {
		if free := w.max - uint64(len(w.store.mappings)); a.core.pool.free != free || len(a.turns) != 0 || len(a.core.todo) != 0 {
			w.t.Errorf("node %d: %d IDs are available, %d are free; %d turns, %d jobs", n, a.core.pool.free, free, len(a.turns), len(a.core.todo))
		}
	}
}

// TestOneKeyOneID: calls fail before or after they took effect, and unused mappings are collected meanwhile. At no time
// does a key have two IDs in use, or an ID two keys. After the faults end, the store contains the held IDs and nothing
// else.
func TestOneKeyOneID(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, seed, 8, 6, 20)
				w.checkContents(w.endure(seed, 60, w.collect))
			})
		})
	}
}

// TestProtectionUnderFaults: others delete and alter mappings while calls fail now and then. In the end each key in use
// has its mapping, with its original ID. The range is large on purpose: a node may take the ID of a mapping that was
// just deleted, and only the size of the range makes that improbable.
func TestProtectionUnderFaults(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, seed, 4, 6, 1<<40)
				w.checkContents(w.endure(seed, 60, func(ctx context.Context) { w.vandalise(ctx, seed) }))
			})
		})
	}
}
