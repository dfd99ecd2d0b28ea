package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// spots is the number of objects of each resource that are created and deleted in a witness.
const spots = 30

// writePatience is how long a write waits for its answer. A frozen server takes
// longer; then the result of the write is unknown until the recorder sees it.
const writePatience = 300 * time.Millisecond

// witness is a cluster whose contents are recorded at each revision. One goroutine writes to it all the time, and
// another one records, both past the proxies.
type witness struct {
	*cluster
	*history
	keys  map[wire.Resource][]string // by spot
	spots []spot

	writing sync.Mutex // held during a write
	over    bool       // no more writes; guarded by writing

	kinds  []fault   // that have to occur before any is repeated
	due    time.Time // when the present fault ends, or the next one begins
	struck []struck  // the faults so far
	wipes  int       // the number of wipes; each way of wiping is used in turn, starting with another one in each cluster
}

func newWitness(w *world, index int) *witness {
	w.t.Helper()
	h := &witness{cluster: emptyCluster(w, index), history: newHistory(), keys: map[wire.Resource][]string{}}
	for i := range spots {
		s := spot{
			name: fmt.Sprint("spot", i),
			id:   h.id<<16 + uint32(i), //nolint:gosec // small
			addr: netip.AddrFrom4([4]byte{10, byte(h.id), 0, byte(i)}),
		}
		h.spots = append(h.spots, s)
		for _, r := range numberedKinds() {
			h.keys[r] = append(h.keys[r], s.numbered(r, h.name, h.id, 0).key)
		}
	}
	return h
}

// write does one write, and returns its position; 0 when it was not acknowledged. The caller holds writing.
func (h *witness) write(ctx context.Context, changes func(number int) []change) int64 {
	ctx, cancel := context.WithTimeout(ctx, writePatience)
	defer cancel()
	n := h.begin()
	all := append(changes(n), change{numberKey, []byte(strconv.Itoa(n))})
	revision, err := commit(ctx, h.client(), all)
	if err != nil {
		return 0
	}
	return h.acknowledge(revision)
}

// churn writes, changes and deletes objects until ctx ends.
func (h *witness) churn(rng *rand.Rand) func(context.Context) error {
	some := func(number int) []change {
		var all []change
		for _, r := range numberedKinds() {
			if rng.IntN(2) == 0 {
				continue
			}
			ch := h.spots[rng.IntN(spots)].numbered(r, h.name, h.id, number)
			if rng.IntN(4) == 0 {
				ch.value = nil
			}
			all = append(all, ch)
		}
		return all
	}
	return func(ctx context.Context) error {
		for waiting.Sleep(ctx, time.Duration(1+rng.IntN(4))*time.Millisecond) == nil {
			if !h.writeUnlessOver(ctx, some) {
				return nil
			}
		}
		return ctx.Err()
	}
}

func (h *witness) writeUnlessOver(ctx context.Context, changes func(number int) []change) bool {
	h.writing.Lock()
	defer h.writing.Unlock()
	if h.over {
		return false
	}
	h.write(ctx, changes)
	return true
}

// close ends the writing, and returns when all that was written is recorded.
func (h *witness) close() error {
	h.writing.Lock()
	defer h.writing.Unlock()
	h.over = true
	h.catchUp()
	return h.complete()
}

// follow records until ctx ends, also when the server and the client are replaced.
func (h *witness) follow(ctx context.Context) error {
	for waiting.Sleep(ctx, 5*time.Millisecond) == nil {
		kv := h.client() // before next: a new etcd has a new client
		base, revision := h.next()
		h.followOne(ctx, kv, base, revision)
	}
	return ctx.Err()
}

func (h *witness) followOne(ctx context.Context, kv *clientv3.Client, base, revision int64) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for resp := range kv.Watch(ctx, "", clientv3.WithPrefix(), clientv3.WithRev(revision)) {
		if resp.CompactRevision > 0 {
			h.spoil(fmt.Errorf("compacted up to revision %d before all was recorded", resp.CompactRevision))
		}
		if !h.record(base, resp.Events) {
			return
		}
	}
}

// catchUp waits until everything that was written is recorded; writing is held.
func (h *witness) catchUp() {
	h.w.t.Helper()
	position := int64(0)
	h.must(h.w.until("a write to "+h.name, func() bool {
		position = h.write(context.Background(), func(int) []change { return nil })
		return position > 0
	}))
	h.must(h.w.until("the record of "+h.name, func() bool { return h.recorded(position) }))
}

// publish writes the cluster's configuration; writing is held.
func (h *witness) publish() {
	h.w.t.Helper()
	h.must(h.w.until("the configuration of "+h.name, func() bool {
		return h.write(context.Background(), func(int) []change {
			return []change{{wire.ClusterConfigKey(h.name), h.config().Encode()}}
		}) > 0
	}))
}

// forget compacts the server's whole history, which is recorded before.
func (h *witness) forget() {
	h.writing.Lock()
	defer h.writing.Unlock()
	h.catchUp()
	h.must(h.compact())
}

// wipe starts another etcd, or the same one without contents, and perhaps with more revisions than before. No proxy is
// open.
func (h *witness) wipe(another, overtaken bool) {
	h.writing.Lock()
	defer h.writing.Unlock()
	h.catchUp()
	_, before := h.next()
	n := h.begin()
	if another {
		h.etcd.RestartAsOther(h.w.t)
	} else {
		h.etcd.RestartEmpty(h.w.t)
	}
	h.lost(n)
	h.connect()
	if overtaken {
		h.overtakes(before)
	}
	h.publish()
}

// writers is the number of concurrent writes to an etcd whose revision has to rise above an earlier one.
const writers = 16

// overtakes writes until the revision is above this one. The caller holds writing.
func (h *witness) overtakes(revision int64) {
	base, _ := h.next()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var g errgroup.Group
	for range writers {
		g.Go(func() error {
			for position := int64(0); position <= base+revision && ctx.Err() == nil; {
				position = h.write(ctx, func(int) []change { return nil })
			}
			return ctx.Err()
		})
	}
	h.must(g.Wait())
}
