package allocate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/test/interop"
)

// meetings is how often collection and allocation of one key coincide.
const meetings = 100

// TestCollectionMeetsAllocation: while the collector of one side deletes an unused mapping, an allocator of one side
// starts to use it. Our collector never deletes it then. Cilium's does, also for its own allocators, because its
// collection locks the number and its allocation the key; a node that uses the mapping writes it again with its number.
func TestCollectionMeetsAllocation(t *testing.T) {
	t.Parallel()
	for _, collects := range sides {
		for _, uses := range sides {
			t.Run(collects+" collects, "+uses+" use", func(t *testing.T) {
				t.Parallel()
				meet(t, collects, uses)
			})
		}
	}
}

func meet(t *testing.T, collects, uses string) {
	server := etcdtest.StartProcess(t)
	client := server.Client(t)
	user := start(t, uses, server.Endpoint(), uses+"-1")
	collector := start(t, collects, server.Endpoint(), collects+"-gc")
	// The history needs these locks to assign a lease to its node.
	for n, name := range map[node]string{user: uses + "-1", collector: collects + "-gc"} {
		if _, err := n.acquire(t.Context(), ownKey(name)); err != nil {
			t.Fatal(err)
		}
	}
	seed := interop.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for i := range meetings {
		key := fmt.Sprintf("k8s:n=%d;", i)
		if _, err := user.acquire(ctx, key); err != nil {
			t.Fatal(err)
		}
		interop.Must(t, user.release(ctx, key))
		if _, err := collector.gc(ctx); err != nil {
			t.Fatal(err)
		}
		var id uint64
		var g errgroup.Group
		g.Go(func() error {
			_, err := collector.gc(ctx)
			return err
		})
		late := time.Duration(rnd.IntN(6000)) * time.Microsecond
		g.Go(func() (err error) {
			_ = waiting.Sleep(ctx, late)
			id, err = user.acquire(ctx, key)
			return err
		})
		interop.Must(t, g.Wait())
		until(t, "the mapping to be there", func() bool {
			resp, err := client.Get(ctx, fmt.Sprintf("%s/id/%d", base, id))
			return err == nil && len(resp.Kvs) == 1 && string(resp.Kvs[0].Value) == key
		})
		interop.Must(t, user.release(ctx, key))
	}
	h := replay(t, client)
	h.judge(t)
	if h.deleted < meetings/2 {
		t.Errorf("only %d mappings were deleted: the two have hardly met", h.deleted)
	}
	interop.KeepTrial(t, interop.Trial{
		Name:    fmt.Sprintf("Garbage collection of %s at the same time as allocations of %s", people[collects], people[uses]),
		Release: interop.Newest,
		Figures: append([]interop.Figure{
			figure("collections at the same time as an allocation", meetings),
			figure("mappings deleted by Cilium while in use", h.by("theirs")[deletedUsed]),
		}, h.figures()...),
	})
}

// people are the sides as the report names them.
var people = map[string]string{"theirs": "Cilium", "ours": "mesh-agent"}
