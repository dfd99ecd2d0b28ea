package remotecluster

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// canaries tells which key families the remote cluster has written completely
// (wire.md §1.9). Only the first appearance of a canary matters: later updates,
// deletions, unknown names and the values are ignored.
type canaries struct {
	dir    string
	cached bool
	watch  *store.Watch[struct{}]

	mu   sync.Mutex
	open map[string]chan struct{} // by name below dir; closed once its canary was seen
	all  bool
}

func newCanaries(cluster string, cached bool, log *slog.Logger) *canaries {
	c := &canaries{dir: wire.SyncedDir(cluster), cached: cached, open: make(map[string]chan struct{})}
	c.watch = store.NewWatch(store.Kind[struct{}]{
		Resource: "synced",
		Decode: func(wire.Expect) store.Decode[struct{}] {
			return func(string, []byte) (*struct{}, error) { return new(struct{}), nil }
		},
		Apply: c.apply,
	}, log)
	return c
}

// fewKeys limits what is read of a cluster besides its resources: its configuration
// and its canaries.
func fewKeys() store.Limits {
	return store.Limits{Share: budget.Share{Keys: 256, Bytes: 1 << 20}, Value: 64 << 10}
}

func (c *canaries) run(ctx context.Context, client Client) error {
	return c.watch.Run(ctx, store.Session{Client: client, Prefix: c.dir, Limits: fewKeys()})
}

func (c *canaries) apply(changes []store.Change[struct{}]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ch := range changes {
		if _, _, known := wire.ParseSyncedName(ch.Name); known && ch.Old == nil {
			c.allow(ch.Name)
		}
	}
}

// allow lets the family start; mu is held.
func (c *canaries) allow(name string) {
	gate := c.gate(name)
	select {
	case <-gate:
	default:
		close(gate)
	}
}

func (c *canaries) gate(name string) chan struct{} {
	gate, ok := c.open[name]
	if !ok {
		gate = make(chan struct{})
		if c.all {
			close(gate)
		}
		c.open[strings.Clone(name)] = gate
	}
	return gate
}

// allowAll is for clusters that write no canaries.
func (c *canaries) allowAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = true
	for name := range c.open {
		c.allow(name)
	}
}

// wait returns when the resource's canary was seen, or says that it was not.
func (c *canaries) wait(ctx context.Context, r wire.Resource, atMost time.Duration) error {
	gate := c.gateOf(r)
	t := time.NewTimer(atMost)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-gate:
		return nil
	case <-t.C:
		return &overdue{fmt.Errorf("no canary %s%s after %s: the cluster says that it writes one when all %s are written; %s",
			c.dir, r.StorePrefix(c.cached), atMost, r, WriterRuns)}
	}
}

// gateOf returns a channel that is closed once the resource's canary was seen.
func (c *canaries) gateOf(r wire.Resource) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gate(r.StorePrefix(c.cached))
}

// facts tells which canaries were seen; nil for none, while there is no configuration.
func (c *canaries) facts() *canaryFacts {
	if c == nil {
		return nil
	}
	f := &canaryFacts{cached: c.cached, seen: make(map[wire.Resource]bool)}
	for _, r := range wire.Resources() {
		select {
		case <-c.gateOf(r):
			f.seen[r] = true
		default:
		}
	}
	return f
}
