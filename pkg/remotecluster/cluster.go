package remotecluster

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/mesh-agent/mesh-agent/internal/base/guard"
	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Client is a session with one endpoint: kvstore's client and its watchdog.
type Client interface {
	kvstore.Client
	// Run monitors the session and returns why it ended.
	Run(ctx context.Context, onProbe func(kvstore.Probe)) error
	// BootstrapComplete ends the limits of the first sync (kvstore.md §1, bootstrapQps).
	BootstrapComplete()
}

// Timings are the waits of a controller. Tests shorten them.
type Timings struct {
	RetryMin, RetryMax time.Duration // pause between attempts, grown exponentially, with jitter; Params.Stretch lengthens it
	SteadyAfter        time.Duration // how long a session must last after its sync before the pauses start with RetryMin again
	ConfigDeadline     time.Duration // how long a session waits for the cluster configuration
	CanaryDeadline     time.Duration // how long a session waits for a canary
	ConflictRetry      time.Duration // pause before a refused configuration that is unchanged is tried again
	DetailDeadline     time.Duration // how long the first sync waits for the canary of a resource that has only details
	LookAround         time.Duration // time between two reads of the etcd's other contents while the configuration is missing
	StaleAfter         time.Duration // age at which an unconfirmed copy counts as stale; three probe intervals, if that is longer
}

// DefaultTimings returns the timings for production.
func DefaultTimings() Timings {
	return Timings{
		RetryMin:       500 * time.Millisecond,
		RetryMax:       5 * time.Second, // with jitter 7.5: a cluster that is reachable again is synced within 10
		SteadyAfter:    time.Minute,
		ConfigDeadline: 3 * time.Minute,
		CanaryDeadline: 5 * time.Minute,
		ConflictRetry:  5 * time.Second,
		DetailDeadline: 30 * time.Second,
		LookAround:     30 * time.Second,
		StaleAfter:     30 * time.Second,
	}
}

// Params are the parameters of a controller.
type Params struct {
	Name string
	// File is the client file that the status shows until Run is called; empty for none.
	File   string
	Origin Origin
	Local  wire.ClusterInfo
	Layout wire.Layout
	// Consumer receives the data that is read.
	Consumer Consumer
	// IDs reserves cluster IDs. Nil: the cluster's configuration is used without a
	// check, for programs that use neither its ID nor the contents of its entries.
	IDs IDs
	// Load reads the configuration of the connection, before each attempt; nil
	// means [clientfile.Load] of the client file.
	Load func(file string) (*clientfile.Config, error)
	// Connect opens a session, or joins one that other clusters use. Each call that
	// opens a session tries the next endpoint.
	Connect func(ctx context.Context, cfg *clientfile.Config) (Client, error)
	// Lists bounds the lists that run at the same time, Batches the batches of events that
	// are applied at the same time. Both are shared by all clusters. Nil means no bound.
	Lists, Batches *store.Turns
	// Budget is the maximum cost of the cluster; its zero value means no bound.
	Budget budget.Budget
	// Memory counts the memory of the cluster's entries; nil means that it is not counted.
	Memory  *budget.Account
	Timings Timings
	// Stretch lengthens the pauses between attempts by the size of the own cluster
	// ([etcd.Options.Stretch]); nil leaves them as they are.
	Stretch func(time.Duration) time.Duration
	// CacheTTL is how long the cluster's service backends are used without contact; 0 means without limit.
	CacheTTL time.Duration
	// Changed is called after each change of state. The caller holds no lock that
	// Status needs. Changed must not block.
	Changed func()
	Log     *slog.Logger // nil: nothing is logged
}

// Cluster is the controller of one cluster.
type Cluster struct {
	Params
	events   *rate.Limiter  // of all resources; nil means no bound
	families []Family       // of the consumer
	holding  sync.Mutex     // held while the backends are withheld or put back in use
	places   *places        // of panics that were logged
	moved    waiting.Signal // the state's contact has changed

	mu      sync.Mutex // never held while Changed is called
	state   state      // guarded by mu
	session session    // guarded by mu; valid only while a session is open in the state

	// The remote cluster may change its configuration at any rate, so not every change is logged.
	changes int            // of the configuration, in all sessions
	telling rate.Sometimes // limits the log lines about changes

	connections rate.Sometimes // limits the log lines about connections
}

// New returns a controller that does nothing until Run is called.
func New(p Params) *Cluster {
	p.Log = cmp.Or(p.Log, slog.New(slog.DiscardHandler)).With("cluster", p.Name)
	if p.Load == nil {
		p.Load = clientfile.Load
	}
	if p.Stretch == nil {
		p.Stretch = func(d time.Duration) time.Duration { return d }
	}
	c := &Cluster{Params: p, families: p.Consumer.Families(), places: newPlaces(), state: state{file: p.File}, moved: waiting.NewSignal(), telling: rate.Sometimes{First: 10, Interval: time.Minute}}
	c.connections.First, c.connections.Interval = c.telling.First, c.telling.Interval
	if n := p.Budget.Events; n > 0 {
		c.events = rate.NewLimiter(rate.Limit(n), n)
	}
	return c
}

// Run connects with the client file and keeps the cluster's view up to date
// until ctx ends. Nothing is withdrawn when it returns.
func (c *Cluster) Run(ctx context.Context, file string) {
	var g errgroup.Group
	defer func() { _ = g.Wait() }() // it returns no error
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if c.CacheTTL > 0 {
		g.Go(c.contained(func() { c.expire(ctx) }))
	}
	g.Go(c.contained(func() { c.Consumer.Follow(ctx) }))
	pause := waiting.Pauses(c.Timings.RetryMin, c.Timings.RetryMax)
	c.step(started(file))
	for {
		err := guard.Run(func() error { return c.runSession(ctx, file, pause) })
		if ctx.Err() != nil {
			return
		}
		c.report(err)
		wait := c.Stretch(pause.NextBackOff())
		if !errors.Is(err, context.Canceled) { // otherwise the owner of the session stops, and ctx ends in a moment
			c.step(attemptFailed(err, wait))
			c.Log.Debug("Not connected; the agent keeps the data of the cluster", "error", err, "retryIn", wait.Round(time.Millisecond))
		}
		if waiting.Sleep(ctx, wait) != nil {
			return
		}
	}
}

// Drain withdraws all entries of the cluster and then releases its ID. The order matters: no other
// cluster may take the ID while entries carry it. The error is that of [Copier].Withdraw, or that of ctx.
func (c *Cluster) Drain(ctx context.Context) error {
	c.step(removalBegun)
	for {
		err := guard.Run(func() error { return c.drain(ctx) })
		if !c.report(err) {
			return err
		}
		if err := waiting.Sleep(ctx, c.Timings.RetryMax); err != nil {
			return err
		}
	}
}

func (c *Cluster) drain(ctx context.Context) error {
	if copier, is := c.Consumer.(Copier); is {
		if err := copier.Withdraw(ctx); err != nil {
			return err
		}
	}
	c.drainFamilies()
	c.applyContact(allSynced)
	if c.IDs != nil {
		c.IDs.Release(c.Name)
	}
	return nil
}

func (c *Cluster) drainFamilies() {
	for _, s := range c.families {
		s.Drain()
	}
	c.step(drained)
}

// Recheck makes the families list and decode everything again in the next session. It is called
// when the rules for refusing entries have changed. No session may run.
func (c *Cluster) Recheck() {
	for _, s := range c.families {
		if r, can := s.(interface{ Recheck() }); can {
			r.Recheck()
		}
	}
}

// Status describes the cluster at this moment.
func (c *Cluster) Status() Status { return c.look().status }

// Find returns the entry of one key of a resource, by its name below the resource's
// prefix; false if the key is unknown.
func (c *Cluster) Find(r wire.Resource, name string) (store.Found, bool) {
	for _, s := range c.families {
		if s.Resource() == r {
			return s.Find(name)
		}
	}
	return store.Found{}, false
}
