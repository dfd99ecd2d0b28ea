package mirror

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/internal/base/guard"
	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// copyOf is what the mirror has of one remote cluster.
type copyOf struct {
	*term
	name     string
	families []*family
	canaries *syncstore.Canaries
	log      *slog.Logger
}

var _ remotecluster.Copier = (*copyOf)(nil)

func (t *term) newCopy(name string) *copyOf {
	c := &copyOf{term: t, name: name, log: t.Log.With("cluster", name)}
	c.canaries = syncstore.NewCanaries(syncstore.CanariesParams{
		Dir: wire.SyncedDir(name), Writer: t.Writer, Holding: t.holding, Log: c.log,
	})
	allowed := syncstore.NewAllowance(t.Rate)
	for _, r := range wire.Resources() {
		f := c.newFamily(r, allowed)
		c.families = append(c.families, f)
		c.canaries.Add(r.StorePrefix(true), f.sync)
	}
	t.copies.Store(name, c)
	return c
}

// observe takes the result of a linearizable read of the own kvstore.
func (c *copyOf) observe(p kvstore.Probe) {
	for _, f := range c.families {
		f.sync.Observe(p)
	}
}

// Families implements [remotecluster.Consumer].
func (c *copyOf) Families() []remotecluster.Family {
	sources := make([]remotecluster.Family, len(c.families))
	for i, f := range c.families {
		sources[i] = f
	}
	return sources
}

// SkipOptional implements [remotecluster.Consumer]: everything is copied.
func (c *copyOf) SkipOptional() bool { return false }

// Adopt writes the cluster's configuration as that of a copy (wire.md §2.1),
// before anything is read that it describes; see [remotecluster.Copier].
func (c *copyOf) Adopt(ctx context.Context, cfg wire.ClusterConfig) error {
	cfg.Capabilities.Cached, cfg.Capabilities.SyncedCanaries = true, true
	return c.configs.put(ctx, c.name, cfg)
}

// Disown withdraws the configuration of a cluster that has another ID now, or may no longer be read, before another
// cluster can have the ID. It tries until it succeeds.
func (c *copyOf) Disown(ctx context.Context) error {
	return c.insist(ctx, func(ctx context.Context) error { return c.configs.disown(ctx, c.name) })
}

// Follow keeps the copy as the remote has it, until ctx ends. An error or a panic ends it for that remote alone: after
// a pause it begins again, with a list of the existing keys. When the lock is lost, the term ends, and Follow with it.
func (c *copyOf) Follow(ctx context.Context) {
	err := waiting.UntilDone(ctx, againMin, againMax, func() error {
		g, running := errgroup.WithContext(ctx)
		for _, f := range c.families {
			g.Go(guard.Func(func() error { return f.sync.Run(running) }))
		}
		g.Go(guard.Func(func() error { return c.canaries.Run(running) }))
		err := g.Wait()
		if errors.Is(err, kvstore.ErrLockLeaseExpired) {
			return backoff.Permanent(err)
		}
		return err
	}, func(err error, pause time.Duration) {
		stack := ""
		if p, panicked := errors.AsType[*guard.Panic](err); panicked {
			stack = p.Stack
		}
		c.log.Error("The copy is not updated at the moment: it starts again", "error", err, "stack", stack, "retryIn", pause.Round(time.Millisecond))
	})
	if ctx.Err() == nil {
		c.log.Error("The copy is no longer updated", "error", err)
	}
}

// The pauses before work on the cache that failed is tried again.
const againMin, againMax = 2 * time.Second, time.Minute

// Withdraw takes a removed cluster out of the cache (wire.md §3.6): first its configuration, and after a pause, in
// which its readers drain it themselves, the canaries and the keys. It tries until it succeeds.
func (c *copyOf) Withdraw(ctx context.Context) error {
	for _, f := range c.families {
		f.detached.Store(true)
	}
	if c.KeepRemoved {
		return nil
	}
	steps := []func(context.Context) error{
		func(ctx context.Context) error { return c.configs.withdraw(ctx, c.name) },
		func(ctx context.Context) error { return waiting.Sleep(ctx, c.DrainDelay) },
		c.canaries.Drain,
	}
	for _, f := range c.families {
		steps = append(steps, f.sync.Drain)
	}
	for _, step := range steps {
		if err := c.insist(ctx, step); err != nil {
			return err
		}
	}
	c.copies.CompareAndDelete(c.name, c)
	return nil
}

// insist repeats a step until it succeeds, or ctx ends.
func (c *copyOf) insist(ctx context.Context, step func(context.Context) error) error {
	return waiting.UntilDone(ctx, againMin, againMax, func() error { return step(ctx) }, func(err error, _ time.Duration) {
		c.log.Warn("Cannot withdraw a cluster from the cache, trying again", "error", err)
	})
}

// Withhold takes the entries to which agents would send traffic out of the cache, because there is no contact with the
// remote. The next complete list writes them again.
func (c *copyOf) Withhold(yes bool) {
	if !yes {
		return
	}
	for _, f := range c.families {
		if f.resource.Describe().OfServices {
			f.withhold()
		}
	}
}

// checkName refuses the name of a remote's key, as it stands below the resource's prefix, that must not become a part
// of a key of ours: one that is empty, or that would lead elsewhere if the key were used as a path. etcd does not do
// that, but a reader of the copy may, like Cilium, which joins and cleans keys as paths. No cluster writes such names.
func checkName(name string) error {
	if name == "" {
		return refuse(errors.New("the key has no name"))
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." {
			return refuse(fmt.Errorf("the name %q has the element %q, which would lead out of its prefix", name, part))
		}
	}
	if i := strings.IndexFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }); i >= 0 {
		return refuse(fmt.Errorf("the name %q has the control character %q", name, name[i]))
	}
	return nil
}

func refuse(why error) error { return &wire.RejectError{Reason: wire.ReasonKey, Err: why} }
