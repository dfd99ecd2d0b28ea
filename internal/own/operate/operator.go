package operate

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/internal/own/identity"
	"github.com/mesh-agent/mesh-agent/internal/own/leading"
	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/modes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Params is what an Operator is made of.
type Params struct {
	// Own is the cluster.
	Own wire.ClusterInfo
	// Writer writes to its kvstore.
	Writer kvstore.Writer
	// Source is the description of the cluster; nil when there is none: then
	// nothing is said of services.
	Source *local.Cluster
	// GlobalNamespaces: namespaces that say nothing are global (wire.md §4.5).
	GlobalNamespaces bool
	// ServiceExports: service exports are published, not only their canary.
	ServiceExports bool
	// SlicesOnly: services are published as EndpointSlices alone (wire.md §1.4), which agents of Cilium before 1.20 do
	// not read.
	SlicesOnly bool
	// NodesAndAddresses: the nodes and addresses of the description are published too
	// (wire.md §0, CRD mode), since the agents of the cluster do not write to its kvstore.
	NodesAndAddresses bool
	// Identities is whose identities are collected. GCInterval is the time between
	// two rounds, 0 for never; GCPerMinute bounds the deletions, 0 is no bound;
	// LocksGCInterval is the time between two looks at the locks.
	Identities                  identity.Owner
	GCInterval, LocksGCInterval time.Duration
	GCPerMinute                 int
	// Allocation configures where the cluster's identities are allocated; the operator sets its own fields in it. The
	// zero value is the kvstore.
	Allocation modes.Config
	// Provision gives etcd its users at the begin of each term; nil is nothing.
	Provision func(ctx context.Context) error
	// While runs during each term, next to the operator's other tasks, for further tasks of the leader; it may be nil.
	// Its context ends with the term, and its error ends the term. leading asks etcd whether this is still the leader,
	// for writes outside of etcd; any error means that this is not certain.
	While func(ctx context.Context, leading func(context.Context) error) error
	// Report is called with a task and whether it was done, repeatedly: users, heartbeat, mappings (of the
	// description's identities), nodes and addresses (of the description, with NodesAndAddresses), identities and locks
	// (those that are collected); it may be nil.
	Report func(task string, err error)
	// Published is called when everything that was known has been published; it may be nil.
	Published func()
	// Metrics are those of the writes; nil is none.
	Metrics *syncstore.Metrics
	// Collected are those of the identities that are collected; nil is none.
	Collected *allocator.Metrics
	Log       *slog.Logger
}

// The waits of production (wire.md §1.10, §2.1, §5).
const (
	DefaultGCInterval      = 15 * time.Minute
	DefaultLocksGCInterval = 25 * time.Second
	DefaultGCPerMinute     = 2500
	heartbeatInterval      = time.Minute
	againAfter             = time.Minute
	reassertInterval       = 5 * time.Minute
)

// Operator operates the cluster while it leads.
type Operator struct {
	Params
	*leading.Leader[publisher]
}

// New returns an operator that does nothing yet. The error is about the cluster.
func New(p Params) (*Operator, error) {
	if err := p.Own.ValidateStrict(); err != nil {
		return nil, err
	}
	if p.Report == nil {
		p.Report = func(string, error) {}
	}
	p.Log = cmp.Or(p.Log, slog.New(slog.DiscardHandler))
	o := &Operator{Params: p}
	o.Leader = leading.New(leading.Params[publisher]{
		Writer: p.Writer, Lock: wire.OperatorLockPath, Begin: o.newPublisher, Run: o.lead, Complete: p.Published, Log: p.Log,
		Unready: func(*publisher) map[string]string {
			return map[string]string{"services": "not everything is published yet"}
		},
		Standby: "no process leads yet, or another one does",
	})
	return o, nil
}

// Config is what the cluster says of itself (wire.md §2.1). Where its nodes,
// identities and addresses are published by its agents, each for itself, there is
// nothing to wait for: no canaries are promised.
func (o *Operator) Config() wire.ClusterConfig {
	c := wire.ClusterConfig{ID: o.Own.ID, Capabilities: wire.Capabilities{MaxConnectedClusters: o.Own.MaxConnectedClusters}}
	if o.Source != nil {
		c.Capabilities.SyncedCanaries = o.NodesAndAddresses
		c.Capabilities.ServiceExportsEnabled = &o.ServiceExports
		c.Capabilities.EndpointSlicesExportMode = wire.EndpointSlicesBoth
		if o.SlicesOnly {
			c.Capabilities.EndpointSlicesExportMode = wire.EndpointSlicesOnly
		}
	}
	return c
}

// lead is one term.
func (o *Operator) lead(ctx context.Context, p *publisher) error {
	lock := p.lock
	g, ctx := errgroup.WithContext(ctx)
	if o.Provision != nil {
		g.Go(func() error { return o.provision(ctx) })
	}
	g.Go(func() error { return p.run(ctx) })
	if o.While != nil {
		g.Go(func() error {
			return o.While(ctx, func(ctx context.Context) error { return o.leading(ctx, lock) })
		})
	}
	g.Go(func() error { return o.heartbeat(ctx, lock) })
	g.Go(func() error { return o.adopt(ctx, lock) })
	g.Go(func() error { return o.collect(ctx, lock) })
	g.Go(func() error { return o.collectLocks(ctx, lock) })
	return g.Wait()
}

// provision gives etcd its users, again until it succeeds.
func (o *Operator) provision(ctx context.Context) error {
	err := waiting.UntilDone(ctx, againAfter, againAfter, func() error {
		err := o.Provision(ctx)
		if ctx.Err() == nil {
			o.Report("users", err)
		}
		return err
	}, func(err error, _ time.Duration) {
		o.Log.Error("Cannot update the users and roles of etcd, trying again", "error", err)
	})
	if err == nil {
		o.Log.Info("All users and roles of etcd are up to date")
	}
	return err
}

func (o *Operator) heartbeat(ctx context.Context, lock *kvstore.Lock) error {
	for {
		_, err := o.Writer.Put(ctx, wire.HeartbeatKey, []byte(time.Now().Format(time.RFC3339)), kvstore.Leased(), kvstore.Holding(lock))
		wait := heartbeatInterval
		if ctx.Err() == nil {
			o.Report("heartbeat", err)
		}
		switch {
		case errors.Is(err, kvstore.ErrLockLeaseExpired):
			return err
		case err != nil && ctx.Err() == nil:
			o.Log.Warn("Cannot write the heartbeat, trying again", "key", wire.HeartbeatKey, "error", err)
			wait = time.Second
		}
		if err := waiting.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}
