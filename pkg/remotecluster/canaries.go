package remotecluster

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// canaries records which key families the remote cluster has written completely
// (wire.md §1.9). Only the first appearance of a canary matters: later updates,
// deletions, unknown names and the values are ignored.
type canaries struct {
	dir    string
	cached bool
	watch  *store.Watch[struct{}]

	closing sync.Mutex                      // held while a channel of seen is closed
	seen    map[wire.Resource]chan struct{} // closed when the resource's canary was seen
}

func newCanaries(cluster string, cached bool, log *slog.Logger) *canaries {
	c := &canaries{dir: wire.SyncedDir(cluster), cached: cached, seen: make(map[wire.Resource]chan struct{})}
	for _, r := range wire.Resources() {
		c.seen[r] = make(chan struct{})
	}
	c.watch = store.NewWatch(store.Kind[struct{}]{
		Resource: "synced",
		Decode: func(wire.Expect) store.Decode[struct{}] {
			return func(string, []byte) (*struct{}, error) { return new(struct{}), nil }
		},
		Apply: c.apply,
	}, log)
	return c
}

// fewKeys returns the limits for keys of a cluster that belong to no resource: its
// configuration and its canaries.
func fewKeys() store.Limits {
	return store.Limits{Share: budget.Share{Keys: 256, Bytes: 1 << 20}, Value: 64 << 10}
}

func (c *canaries) apply(changes []store.Change[struct{}]) {
	for _, ch := range changes {
		if r, cached, known := wire.ParseSyncedName(ch.Name); known && cached == c.cached && ch.Old == nil {
			c.allow(r)
		}
	}
}

// allow lets resources start. For a cluster that writes no canaries it is called with all resources.
func (c *canaries) allow(resources ...wire.Resource) {
	c.closing.Lock()
	defer c.closing.Unlock()
	for _, r := range resources {
		if !isClosed(c.seen[r]) {
			close(c.seen[r])
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// forever is the wait for a canary that may never appear.
const forever time.Duration = math.MaxInt64

// wait returns when the resource's canary was seen. It returns an error when ctx ends or
// atMost has passed before that.
func (c *canaries) wait(ctx context.Context, r wire.Resource, atMost time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-c.seen[r]:
		return nil
	case <-time.After(atMost):
		return &overdue{fmt.Errorf("no canary %s%s after %s: the cluster says that it writes one when all %s are written; %s",
			c.dir, r.StorePrefix(c.cached), atMost, r, WriterRuns)}
	}
}

// facts returns which canaries were seen. It returns nil for a nil c: there is no configuration yet.
func (c *canaries) facts() *canaryFacts {
	if c == nil {
		return nil
	}
	f := &canaryFacts{cached: c.cached, seen: make(map[wire.Resource]bool)}
	for r, gate := range c.seen {
		f.seen[r] = isClosed(gate)
	}
	return f
}
