package remotecluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/internal/base/guard"
	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// runSession runs one session, from the load of the client file, and returns why it ended.
func (c *Cluster) runSession(ctx context.Context, file string, pause backoff.BackOff) (err error) {
	c.step(entered(phaseConnect))
	cfg, err := c.Load(file)
	if err != nil {
		hash, _ := clientfile.Fingerprint(file) // zero if the file cannot be read
		c.note(fileUnread(hash))
		return &unusable{err}
	}
	c.step(fileRead(cfg.Endpoints, cfg.Fingerprint))
	began := time.Now()
	client, err := c.Connect(ctx, cfg)
	if err != nil {
		return err
	}
	c.connections.Do(func() {
		c.Log.Info("Connected", "endpoint", client.Status().Endpoint, "took", time.Since(began).Round(time.Millisecond))
	})
	defer client.Close()
	var config *configWatch
	if c.Origin == OriginRemote {
		config = newConfigWatch(c.Name, c.Log)
	}
	c.open(client, config)
	defer func() { c.end(err) }()

	if c.current().inVain {
		client.BootstrapComplete()
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(guard.Func(func() error { return c.followCertificate(ctx, cfg, client) }))
	g.Go(guard.Func(func() error { return client.Run(ctx, func(p kvstore.Probe) { c.observe(p, config) }) }))
	if config == nil {
		g.Go(guard.Func(func() error { return c.serve(ctx, client, ownConfig(c.Local), nil, pause) }))
		return g.Wait()
	}
	g.Go(guard.Func(func() error {
		return config.watch.Run(ctx, store.Session{Client: client, Prefix: config.key, OneKey: true, Limits: fewKeys()})
	}))
	g.Go(guard.Func(func() error { return c.discover(ctx, client, config, pause) }))
	g.Go(guard.Func(func() error { return c.lookAround(ctx, client, config) }))
	return g.Wait()
}

// unusable marks an error that no retry resolves: the user must change the file.
type unusable struct{ error }

func (u *unusable) Unwrap() error { return u.error }

// overdue is the end of a session that waited in vain for a key of the remote
// cluster. The next sessions do not count as in their first sync: otherwise the
// clusters that share them would never get the limits of normal operation.
type overdue struct{ error }

func (o *overdue) Unwrap() error { return o.error }

// observe passes the result of a linearizable read to the state, the configuration watch and the families.
func (c *Cluster) observe(p kvstore.Probe, config *configWatch) {
	c.note(probed(p))
	if config != nil {
		config.watch.Observe(p)
	}
	for _, s := range c.families {
		s.Observe(p)
	}
}

// discover runs the families according to the cluster's configuration, again for
// each new configuration, until the session ends.
func (c *Cluster) discover(ctx context.Context, client Client, config *configWatch, pause backoff.BackOff) error {
	c.step(entered(phaseConfig))
	deadline := time.After(c.Timings.ConfigDeadline)
	for {
		cfg, changed := config.current()
		if cfg == nil {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-changed:
				continue
			case <-deadline:
				return &overdue{config.missing(c.Timings.ConfigDeadline)}
			}
		}
		if err := c.serve(ctx, client, *cfg, changed, pause); err != nil {
			return err
		}
	}
}

// serve adopts one configuration and runs the families until it changes (then
// it returns nil) or the session ends.
func (c *Cluster) serve(ctx context.Context, client Client, cfg wire.ClusterConfig, changed <-chan struct{}, pause backoff.BackOff) error {
	if err := c.adopt(ctx, cfg); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.step(configRefused(err))
		client.BootstrapComplete() // nothing is listed, for an unknown time
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-time.After(c.Timings.ConflictRetry):
		}
		return nil
	}
	if copier, is := c.Consumer.(Copier); is {
		c.step(handing(true))
		err := copier.Adopt(ctx, cfg)
		c.step(handing(false))
		if err != nil {
			return err
		}
	}
	c.step(configAdopted(cfg))
	g, ctx := errgroup.WithContext(ctx)
	canaries := newCanaries(c.Name, cfg.Capabilities.Cached, c.Log)
	c.setCanaries(canaries)
	if cfg.Capabilities.SyncedCanaries {
		g.Go(guard.Func(func() error {
			return canaries.watch.Run(ctx, store.Session{Client: client, Prefix: canaries.dir, Limits: fewKeys()})
		}))
	} else {
		canaries.allow(wire.Resources()...)
	}
	for _, s := range c.families {
		g.Go(guard.Func(func() error { return c.feed(ctx, client, cfg, s, canaries) }))
	}
	g.Go(guard.Func(func() error { return c.awaitSync(ctx, client, cfg.Capabilities, pause) }))
	g.Go(func() error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
			return errReconfigured
		}
	})
	err := g.Wait()
	if errors.Is(err, errReconfigured) {
		c.changes++
		c.telling.Do(func() { c.Log.Info("Cluster configuration changed", "times", c.changes) })
		return nil
	}
	return err
}

var errReconfigured = errors.New("cluster configuration changed")

// adopt validates a configuration and reserves its ID. If the cluster has another ID
// than before, all its entries are withdrawn first: they carry the old ID.
// The own cluster has its ID from the start.
func (c *Cluster) adopt(ctx context.Context, cfg wire.ClusterConfig) error {
	if c.Origin == OriginLocal || c.IDs == nil {
		return nil
	}
	if err := cfg.Validate(c.Local); err != nil {
		return fmt.Errorf("the configuration at %s is not valid: %w (%s)", wire.ClusterConfigKey(c.Name), err, remedy(cfg, c.Layout))
	}
	if err := c.IDs.Admit(c.Name, cfg.ID); err != nil {
		if no, is := errors.AsType[*Inadmissible](err); is && no.Withdraw {
			return cmp.Or(c.disown(ctx), err)
		}
		return err
	}
	if id := c.current().clusterID; id != 0 && id != cfg.ID {
		// Cilium keeps the old ID until it has the new one (wire.md §2.3). That would let
		// two clusters that swap their IDs block each other for ever.
		if err := c.disown(ctx); err != nil {
			return err
		}
	}
	return c.IDs.Reserve(c.Name, cfg.ID)
}

// disown withdraws all entries with the ID and then releases the ID.
func (c *Cluster) disown(ctx context.Context) error {
	if copier, is := c.Consumer.(Copier); is {
		if err := copier.Disown(ctx); err != nil {
			return err
		}
	}
	c.drainFamilies()
	c.IDs.Release(c.Name)
	return nil
}

// remedy returns the advice for a configuration that is not valid.
func remedy(cfg wire.ClusterConfig, layout wire.Layout) string {
	switch {
	case cfg.ID == 0:
		return fmt.Sprintf("give that cluster its own ID in 1..%d: cluster.id in its Cilium's values", layout.Max())
	case cfg.ID > layout.Max() && layout.Max() < wire.MaxConnectedClusters511:
		return fmt.Sprintf("it has ID %d: give that cluster one in 1..%d, or let the whole mesh have IDs up to 511, here with --max-connected-clusters=511", cfg.ID, layout.Max())
	case cfg.ID > layout.Max():
		return fmt.Sprintf("it has ID %d: give that cluster one in 1..%d", cfg.ID, layout.Max())
	case layout.Max() == wire.MaxConnectedClusters511 && cfg.Capabilities.MaxConnectedClusters != layout.Max():
		return "all clusters of a mesh need the same number: maxConnectedClusters in their Cilium's values, --max-connected-clusters here"
	default:
		return fmt.Sprintf("known are %q, %q and none; a newer version may have written it", wire.EndpointSlicesBoth, wire.EndpointSlicesOnly)
	}
}

// feed runs one family once its canary was seen. A resource that the cluster does
// not export is not followed; awaitSync withdraws its remaining entries.
func (c *Cluster) feed(ctx context.Context, client Client, cfg wire.ClusterConfig, s Family, canaries *canaries) error {
	r := s.Resource()
	if !cfg.Capabilities.Exports(r) {
		return nil
	}
	if err := c.gate(ctx, cfg.Capabilities, r, canaries); err != nil {
		return err
	}
	limits := store.LimitsOf(c.Budget, r, c.events)
	limits.Memory = c.Memory
	return s.Run(ctx, store.Session{
		Client: client,
		Prefix: r.Prefix(c.Name, cfg.Capabilities.Cached),
		Expect: wire.Expect{
			Cluster: c.Name, ClusterID: cfg.ID, LocalID: c.Local.ID, Layout: c.Layout,
			Own: c.Origin == OriginLocal,
		},
		Limits: limits, Lists: c.Lists, Batches: c.Batches,
	})
}

// gate waits for the resource's canary. A canary that does not appear ends the
// session, unless the resource has only details of other resources: then the
// cluster is used without it, and its status shows that. For an optional resource
// gate waits without limit.
func (c *Cluster) gate(ctx context.Context, caps wire.Capabilities, r wire.Resource, canaries *canaries) error {
	switch {
	case c.rules().optional(r):
		return canaries.wait(ctx, r, forever)
	case !caps.Details(r):
		return canaries.wait(ctx, r, c.Timings.CanaryDeadline)
	}
	if err := canaries.wait(ctx, r, c.Timings.DetailDeadline); err != nil && ctx.Err() == nil {
		c.step(canaryOverdue(r, true))
		_ = canaries.wait(ctx, r, forever) // the error is that of ctx
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	c.step(canaryOverdue(r, false))
	return nil
}

// awaitSync ends the bootstrap once every family is synced and follows. Only
// then it withdraws the resources that the cluster no longer exports: another resource
// may replace them, and there must be no time with neither of the two.
func (c *Cluster) awaitSync(ctx context.Context, client Client, caps wire.Capabilities, pause backoff.BackOff) error {
	// The checks become less frequent: the delay is a twentieth of the time waited so far.
	// So hundreds of clusters that wait a long time cost almost nothing.
	for wait := 20 * time.Millisecond; !c.following(); wait = min(wait*21/20, time.Second) {
		if err := waiting.Sleep(ctx, wait); err != nil {
			return err
		}
	}
	for _, s := range c.families {
		if !caps.Exports(s.Resource()) {
			s.Drain()
		}
	}
	client.BootstrapComplete()
	c.applyContact(allSynced)
	c.Changed()
	// A server may end every session as soon as everything is copied. So only a session
	// that lasts resets the pauses.
	if err := waiting.Sleep(ctx, c.Timings.SteadyAfter); err != nil {
		return err
	}
	pause.Reset()
	return nil
}

// following reports whether every family that is needed is synced and follows.
func (c *Cluster) following() bool {
	j := c.look()
	return !slices.ContainsFunc(j.families, func(s contribution) bool { return s.waiting() })
}
