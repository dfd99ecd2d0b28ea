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

// runSession is one connection, from the file to the reason of its end.
func (c *Cluster) runSession(ctx context.Context, file string, pause backoff.BackOff) (err error) {
	c.step(entered(phaseConnect))
	cfg, err := c.Load(file)
	if err != nil {
		hash, _ := clientfile.Fingerprint(file) // of one that cannot be read there is none
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

// unusable marks what no retry mends: somebody must change the file.
type unusable struct{ error }

func (u *unusable) Unwrap() error { return u.error }

// overdue is the end of a session that waited in vain for something of the
// remote cluster. The next ones do not count as in their first sync: whoever
// shares them shall not be without the limits of normal operation for ever.
type overdue struct{ error }

func (o *overdue) Unwrap() error { return o.error }

// observe takes a linearizable read of the session to all that follow it.
func (c *Cluster) observe(p kvstore.Probe, config *configWatch) {
	c.note(probed(p))
	if config != nil {
		config.watch.Observe(p)
	}
	for _, s := range c.sources {
		s.Observe(p)
	}
}

// discover runs the sources as the cluster's configuration says, again for
// each configuration, until the session ends.
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

// serve adopts one configuration and runs the sources until it changes (then
// it returns nil) or the session ends.
func (c *Cluster) serve(ctx context.Context, client Client, cfg wire.ClusterConfig, changed <-chan struct{}, pause backoff.BackOff) error {
	if err := c.adopt(ctx, cfg); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.step(configRefused(err))
		client.BootstrapComplete() // nothing is listed, for who knows how long
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
	for _, s := range c.sources {
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

// adopt validates a configuration and takes its ID. A cluster that comes with
// another ID than before loses everything first: its entries carry the old one.
// The own cluster has had its ID from the start.
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
		// Keeping it until the new one is had, as Cilium does (wire.md §2.3), would let
		// two clusters that swap their IDs block each other for ever.
		if err := c.disown(ctx); err != nil {
			return err
		}
	}
	return c.IDs.Reserve(c.Name, cfg.ID)
}

// disown gives the ID back, when nothing carries it any more.
func (c *Cluster) disown(ctx context.Context) error {
	if copier, is := c.Consumer.(Copier); is {
		if err := copier.Disown(ctx); err != nil {
			return err
		}
	}
	c.drainSources()
	c.IDs.Release(c.Name)
	return nil
}

// remedy says what to do about a configuration that is not valid.
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

// feed runs one source once its canary allows it. What the cluster does not
// export is not followed; awaitSync withdraws what is left of it.
func (c *Cluster) feed(ctx context.Context, client Client, cfg wire.ClusterConfig, s Source, canaries *canaries) error {
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

// gate waits for the resource's canary. One that does not come ends the
// session, unless the resource has only details of what others bring: then the
// cluster is used without it, and says so. That of an optional one may stay away.
func (c *Cluster) gate(ctx context.Context, caps wire.Capabilities, r wire.Resource, canaries *canaries) error {
	switch {
	case c.rules().optional(r):
		return canaries.wait(ctx, r, forever)
	case !caps.Details(r):
		return canaries.wait(ctx, r, c.Timings.CanaryDeadline)
	}
	if err := canaries.wait(ctx, r, c.Timings.DetailDeadline); err != nil && ctx.Err() == nil {
		c.step(canaryOverdue(r, true))
		_ = canaries.wait(ctx, r, forever) // its error is the context's
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	c.step(canaryOverdue(r, false))
	return nil
}

// awaitSync ends the bootstrap once every source is synced and follows. Only
// then it withdraws what the cluster does not export any more: another resource
// may take its place, and there must be no time with neither.
func (c *Cluster) awaitSync(ctx context.Context, client Client, caps wire.Capabilities, pause backoff.BackOff) error {
	// Looked at more and more rarely: the delay is a twentieth of the time that
	// it took, and hundreds of clusters that wait for somebody cost nothing.
	for wait := 20 * time.Millisecond; !c.following(); wait = min(wait*21/20, time.Second) {
		if err := waiting.Sleep(ctx, wait); err != nil {
			return err
		}
	}
	for _, s := range c.sources {
		if !caps.Exports(s.Resource()) {
			s.Drain()
		}
	}
	client.BootstrapComplete()
	c.applyContact(allSynced)
	c.Changed()
	// A server may work until everything is copied and then end the session, each time:
	// only one that lasts ends the growth of the pauses.
	if err := waiting.Sleep(ctx, c.Timings.SteadyAfter); err != nil {
		return err
	}
	pause.Reset()
	return nil
}

// following reports whether every source that is needed is synced and follows.
func (c *Cluster) following() bool {
	j := c.look()
	return !slices.ContainsFunc(j.sources, func(s contribution) bool { return s.waiting() })
}
