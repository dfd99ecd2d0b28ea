package remotecluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/mesh-agent/mesh-agent/internal/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Source fills the tables with one resource of one cluster. Run is never
// called twice at once; what a source holds outlives the sessions it is run on.
type Source interface {
	// Resource names what it brings.
	Resource() wire.Resource
	// Run follows the resource until ctx ends or the session cannot serve any
	// more, and says why.
	Run(ctx context.Context, s store.Session) error
	// Observe takes the result of a linearizable read on the connection.
	Observe(p kvstore.Probe)
	// Drain withdraws everything the source brought.
	Drain()
	// Status describes it at this moment.
	Status() store.Status
}

// Client is a session with one endpoint: kvstore's client and its watchdog.
type Client interface {
	kvstore.Client
	// Run watches over the session and returns why it is over.
	Run(ctx context.Context, onProbe func(kvstore.Probe)) error
	// BootstrapComplete tells it that the first sync is over (kvstore.md, rate
	// limits).
	BootstrapComplete()
}

// IDs hands out cluster IDs: one owner each (wire.md §2.3).
type IDs interface {
	// Reserve gives the ID to the cluster of the name. An error says who has it.
	Reserve(name string, id uint32) error
	// Release takes back whatever the cluster has.
	Release(name string)
}

// Timings are the waits of a controller. Tests shorten them.
type Timings struct {
	RetryMin, RetryMax time.Duration // pause between attempts, grown exponentially, with jitter
	ConfigDeadline     time.Duration // how long a session waits for the cluster configuration
	CanaryDeadline     time.Duration // how long a session waits for a canary
	ConflictRetry      time.Duration // pause before a refused configuration is tried again unchanged
	StaleAfter         time.Duration // age at which a copy that could not be confirmed counts as stale
}

// DefaultTimings are those of production.
func DefaultTimings() Timings {
	return Timings{
		RetryMin:       500 * time.Millisecond,
		RetryMax:       15 * time.Second,
		ConfigDeadline: 3 * time.Minute,
		CanaryDeadline: 5 * time.Minute,
		ConflictRetry:  5 * time.Second,
		StaleAfter:     30 * time.Second,
	}
}

// Params is what a controller is made of.
type Params struct {
	Name    string
	Local   wire.ClusterInfo
	Layout  wire.Layout
	Sources []Source // drained in this order
	IDs     IDs
	// Connect opens a session with the endpoint of that attempt.
	Connect func(ctx context.Context, cfg *kvstore.Config, attempt int) (Client, error)
	Lists   *semaphore.Weighted // shared by all clusters; nil is no bound
	Timings Timings
	// Changed is called after each change of state, with no lock held by the
	// caller that Status needs. It must not block.
	Changed func()
	Log     *slog.Logger
}

// Cluster is the controller of one remote cluster.
type Cluster struct {
	Params
	track tracker
}

// New returns a controller that does nothing yet.
func New(p Params) *Cluster {
	p.Log = p.Log.With("cluster", p.Name)
	return &Cluster{Params: p, track: tracker{changed: p.Changed}}
}

// Run connects with the client file and keeps the cluster's view up to date
// until ctx ends. Nothing is withdrawn when it returns.
func (c *Cluster) Run(ctx context.Context, file string) {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = c.Timings.RetryMin, c.Timings.RetryMax
	c.track.begin(file)
	for attempt := 0; ; attempt++ {
		err := c.session(ctx, file, attempt, pause)
		if ctx.Err() != nil {
			return
		}
		wait := pause.NextBackOff()
		c.track.failed(err, wait)
		c.Log.Warn("Not connected; what is known of the cluster is kept", "error", err, "retryIn", wait.Round(time.Millisecond))
		if waiting.Sleep(ctx, wait) != nil {
			return
		}
	}
}

// session is one connection, from the file to the reason of its end.
func (c *Cluster) session(ctx context.Context, file string, attempt int, pause backoff.BackOff) error {
	c.track.phase(phaseConnect)
	cfg, err := kvstore.LoadConfig(file)
	if err != nil {
		return &unusable{err}
	}
	c.track.endpoints(cfg.Endpoints)
	client, err := c.Connect(ctx, cfg, attempt)
	if err != nil {
		return err
	}
	defer client.Close()
	config := newConfigWatch(c.Name, c.Log)
	c.track.connected(client, config)
	defer c.track.disconnected()
	c.Log.Info("Connected", "endpoint", client.Status().Endpoint)

	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return client.Run(ctx, c.observe) })
	g.Go(func() error { return config.run(ctx, client) })
	g.Go(func() error { return c.discover(ctx, client, config, pause) })
	return g.Wait()
}

// unusable marks what no retry mends: somebody must change the file.
type unusable struct{ error }

func (u *unusable) Unwrap() error { return u.error }

// observe takes a linearizable read of the session to all sources.
func (c *Cluster) observe(p kvstore.Probe) {
	c.track.probed(p)
	for _, s := range c.Sources {
		s.Observe(p)
	}
}

// discover runs the sources as the cluster's configuration says, again for
// each configuration, until the session ends.
func (c *Cluster) discover(ctx context.Context, client Client, config *configWatch, pause backoff.BackOff) error {
	c.track.phase(phaseConfig)
	deadline := time.NewTimer(c.Timings.ConfigDeadline)
	defer deadline.Stop()
	for {
		cfg, changed := config.current()
		if cfg == nil {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-changed:
				continue
			case <-deadline.C:
				return config.missing(c.Timings.ConfigDeadline)
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
	if err := c.adopt(cfg); err != nil {
		c.track.refused(err)
		c.Log.Warn("Cannot use the cluster", "error", err)
		return waitChange(ctx, changed, c.Timings.ConflictRetry)
	}
	c.track.adopted(cfg)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	canaries := newCanaries(c.Name, cfg.Capabilities.Cached, c.Log)
	c.track.gated(canaries)
	if cfg.Capabilities.SyncedCanaries {
		g.Go(func() error { return canaries.run(ctx, client) })
	} else {
		canaries.allowAll()
	}
	for _, s := range c.Sources {
		g.Go(func() error { return c.feed(ctx, client, cfg, s, canaries) })
	}
	g.Go(func() error { return c.awaitSync(ctx, client, pause) })
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
		c.Log.Info("Cluster configuration changed")
		return nil
	}
	return err
}

var errReconfigured = errors.New("cluster configuration changed")

// adopt validates a configuration and takes its ID. A cluster that comes with
// another ID than before loses everything first: its entries carry the old one.
func (c *Cluster) adopt(cfg wire.ClusterConfig) error {
	if err := cfg.Validate(c.Local); err != nil {
		return fmt.Errorf("the configuration at %s is not valid: %w", wire.ClusterConfigKey(c.Name), err)
	}
	if id := c.track.id(); id != 0 && id != cfg.ID {
		c.Log.Warn("The cluster's ID changed; withdrawing what it published under the old one", "old", id, "new", cfg.ID)
		c.drainSources()
		// Nothing carries it any more. Keeping it until the new one is had, as
		// Cilium does (wire.md §2.3), would let two clusters that swap their IDs
		// block each other for ever.
		c.IDs.Release(c.Name)
	}
	if err := c.IDs.Reserve(c.Name, cfg.ID); err != nil {
		return err
	}
	return nil
}

func waitChange(ctx context.Context, changed <-chan struct{}, atMost time.Duration) error {
	t := time.NewTimer(atMost)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-changed:
	case <-t.C:
	}
	return nil
}

// feed runs one source once its canary allows it.
func (c *Cluster) feed(ctx context.Context, client Client, cfg wire.ClusterConfig, s Source, canaries *canaries) error {
	if err := canaries.wait(ctx, s.Resource(), c.Timings.CanaryDeadline); err != nil {
		return err
	}
	return s.Run(ctx, store.Session{
		Client: client,
		Prefix: s.Resource().Prefix(c.Name, cfg.Capabilities.Cached),
		Expect: wire.Expect{Cluster: c.Name, ClusterID: cfg.ID, LocalID: c.Local.ID, Layout: c.Layout},
		Lists:  c.Lists,
	})
}

// awaitSync ends the bootstrap once every source is synced and follows.
func (c *Cluster) awaitSync(ctx context.Context, client Client, pause backoff.BackOff) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !c.following() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	client.BootstrapComplete()
	pause.Reset()
	c.Changed()
	c.Log.Info("Synced")
	return nil
}

func (c *Cluster) following() bool {
	for _, s := range c.Sources {
		if st := s.Status(); !st.Synced || !st.Following {
			return false
		}
	}
	return true
}

// Drain withdraws everything the cluster brought and gives its ID back, in
// this order: nobody may take the ID while entries carry it.
func (c *Cluster) Drain() {
	c.track.removing()
	c.drainSources()
	c.IDs.Release(c.Name)
}

func (c *Cluster) drainSources() {
	for _, s := range c.Sources {
		s.Drain()
	}
	c.track.forgetID()
}
