package xdsserver

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"maps"
	"time"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/internal/base/boundary"
	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/view"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

const (
	// retryInterval is the interval of retries for assignments that are held back: when a cluster without these
	// services has been read, no service changes.
	retryInterval = time.Second
	// maxRetried bounds how many services are tried again when there is room for more clusters.
	maxRetried = 100
)

// changes applies the changes of services to a catalog. It belongs to one goroutine.
type changes struct {
	*catalog
	changed map[serviceName]struct{}
	pods    podChanges
	unread  bool         // at the last retry
	again   *time.Ticker // for retries; one for all calls of Idle
}

// run follows the view until ctx ends, and returns the error of ctx. token is the position at which it begins:
// resources that clients follow before run begins are made of a state that is not older than it. After a panic, run
// begins again.
func (c *catalog) run(ctx context.Context, token string) error {
	again := false
	for {
		err := c.boundary.Run(func() error {
			f := &changes{catalog: c, unread: true, changed: make(map[serviceName]struct{}), pods: newPodChanges(c.view), again: time.NewTicker(retryInterval)}
			defer f.again.Stop()
			if again { // all services are updated
				token = c.view.Token(c.view.Position())
				c.update(nil)
			}
			return c.view.Stream(token, view.Subscription{Kind: view.Services}, view.Subscription{Kind: view.ServiceExports}).Run(ctx, f, nil)
		})
		switch again = true; {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, new(view.Ended)): // changes was too slow
		case errors.Is(err, boundary.ErrInternal):
			if err := waiting.Sleep(ctx, retryInterval); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// Event implements [view.Receiver].
func (f *changes) Event(e view.Event) error {
	switch e.Type {
	case view.Reset:
		clear(f.changed)
		f.update(nil)
	case view.Upsert, view.Delete:
		switch o := e.Object.(type) {
		case *services.Global:
			f.changed[serviceName{o.Namespace, o.Name}] = struct{}{}
		case *services.Export: // the name may now stand for another service
			f.changed[serviceName{o.Namespace, o.Name}] = struct{}{}
			f.changed[serviceName{o.Namespace, wire.DerivedServiceName(o.Namespace, o.Name)}] = struct{}{}
		}
	case view.Page, view.Reached:
		f.flush()
	}
	return nil
}

// Idle implements [view.Receiver].
func (f *changes) Idle(ctx context.Context, _ view.Event, more <-chan struct{}) error {
	f.flush()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-f.again.C:
			f.retry()
			f.lookAtUnread()
			f.lookAtPods()
		case <-more:
			return nil
		}
	}
}

// hold reports whether an assignment is held back: clients must not see a service without backends while a cluster
// that may have some has not been read since the start. A client that has backends from another agent keeps them. A
// client that has none waits until the assignment is sent.
func (c *catalog) hold(b *body) bool { return b.usable == 0 && c.unread() }

// unread reports whether a cluster was not read since the start.
func (c *catalog) unread() bool { return len(c.view.Unread()) > 0 }

// retry updates the services with assignments that are held back: the clusters may have been read.
func (c *catalog) retry() {
	c.mu.Lock()
	held := maps.Clone(c.held)
	c.mu.Unlock()
	if len(held) > 0 {
		c.update(held)
	}
}

// lookAtUnread sends the removal of clusters that clients have from another agent once each cluster of the mesh was read.
func (f *changes) lookAtUnread() {
	before := f.unread
	if f.unread = f.catalog.unread(); before && !f.unread {
		f.all.update(nil, nil)
	}
}

func (f *changes) flush() {
	if len(f.changed) > 0 {
		f.update(f.changed)
		clear(f.changed)
	}
}

// update updates these services, or all services when changed is nil. Assignments that stay the same are not sent. The
// removal of clusters is sent before the endpoints, new clusters after them (xds.md A6).
func (c *catalog) update(changed map[serviceName]struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	txn := c.view.ReadTxn()
	endpoints, added := make(map[string]*body), make(map[string]*body)
	var gone []string
	everything := changed == nil
	if everything {
		changed = c.allServices(txn)
	}
	for s := range c.meant(txn, changed) {
		delete(c.held, s)
		for _, a := range c.targets[s] {
			if c.remake(txn, a) || everything { // the caches do not send unchanged assignments
				a.into(endpoints)
			}
		}
		if c.clusters.clients > 0 {
			gone = append(gone, c.listNow(txn, s, added)...)
		}
	}
	if len(gone) > 0 {
		gone = append(gone, c.fill(txn, added)...)
		c.all.update(nil, gone)
	}
	if len(endpoints) > 0 {
		c.named[endpointKind].update(endpoints, nil)
	}
	if len(added) > 0 {
		c.all.update(added, nil)
	}
	c.countLeftOut()
}

// allServices returns the services that clients follow; c.mu is held.
func (c *catalog) allServices(txn statedb.ReadTxn) map[serviceName]struct{} {
	all := make(map[serviceName]struct{})
	for s := range c.targets {
		all[s] = struct{}{}
	}
	if c.clusters.clients == 0 {
		return all
	}
	for s := range c.clusters.named {
		all[s] = struct{}{}
	}
	for g := range c.view.Services.Global().All(txn) {
		all[serviceName{g.Namespace, g.Name}] = struct{}{}
	}
	return all
}

// meant iterates over these services, and over the names that clients use for them, if they differ.
func (c *catalog) meant(txn statedb.ReadTxn, all map[serviceName]struct{}) iter.Seq[serviceName] {
	return func(yield func(serviceName) bool) {
		for s := range all {
			if !yield(s) {
				return
			}
			g, _, found := c.view.Services.Global().Get(txn, services.GlobalByName(s.namespace, s.name))
			if !found {
				continue
			}
			by := serviceName{s.namespace, c.view.Services.ClientName(txn, g)}
			if _, already := all[by]; !already && by.name != "" && !yield(by) {
				return
			}
		}
	}
}

// into adds the assignment to a map under all its names.
func (a *assigned) into(all map[string]*body) {
	if a.now == nil {
		return
	}
	for name := range a.names {
		all[name] = a.now
	}
}

// remake makes the assignment again, and reports whether it has changed. If there is no memory for a larger one, it is
// not larger than before. c.mu is held.
func (c *catalog) remake(txn statedb.ReadTxn, a *assigned) bool {
	now := c.choose(txn, a.target, maxAssignment)
	if now != nil && a.resize(c.kept, resourceOverhead+int64(len(now.bytes)), false) != nil {
		if now = c.choose(txn, a.target, max(minAssignment, a.now.length())); now != nil {
			_ = a.resize(c.kept, resourceOverhead+int64(len(now.bytes)), true) // no error with force
		}
	}
	switch {
	case now == nil, a.now != nil && bytes.Equal(now.bytes, a.now.bytes):
		return false
	case a.now == nil && c.hold(now):
		c.held[a.service] = struct{}{}
		return false
	}
	before := a.now
	a.now = now
	c.note(a, before, now)
	return true
}

// listNow updates the clusters of a service under the name that clients use for it, and removes them under all other
// names; c.mu is held.
func (c *catalog) listNow(txn statedb.ReadTxn, s serviceName, added map[string]*body) (gone []string) {
	g := c.view.Services.Find(txn, s.namespace, s.name, nil)
	if g != nil && c.view.Services.ClientName(txn, g) != s.name {
		g = nil
	}
	return c.list(s, g, added)
}

// fill updates some of the services that have ports without room; c.mu is held.
func (c *catalog) fill(txn statedb.ReadTxn, added map[string]*body) (gone []string) {
	for _, s := range c.clusters.waiting() {
		gone = append(gone, c.listNow(txn, s, added)...)
	}
	return gone
}

// note logs when a service has lost its last backend, and when it has one again: clients cannot find out why their
// calls fail. It also logs when there is no room for all backends.
func (c *catalog) note(a *assigned, before, now *body) {
	c.leftOut += now.numLeftOut() - before.numLeftOut()
	name := clusterName(a.service, a.port)
	switch usedTo, has := before.numUsable() > 0, now.numUsable() > 0; {
	case before == nil:
	case usedTo && !has && now != nil:
		c.log.Warn("A service that xDS clients follow no longer has backends", "name", name)
	case has && !usedTo:
		c.log.Info("A service that xDS clients follow has backends", "name", name)
	}
	if now.numLeftOut() > 0 && before.numLeftOut() == 0 && c.saying.Allow() {
		c.log.Warn("A service has more backends than an xDS message has room for; clients get the first ones of each cluster", "name", name, "left-out", now.numLeftOut())
	}
}

// countLeftOut sets the metrics of the backends and ports that there is no room for; c.mu is held.
func (c *catalog) countLeftOut() {
	c.metrics.leftOut.WithLabelValues(endpointKind.String()).Set(float64(c.leftOut))
	out := c.clusters.out
	c.metrics.leftOut.WithLabelValues(clusterKind.String()).Set(float64(out))
	if out > 0 && !c.clusters.warned {
		c.log.Warn("There are more service ports than Envoys get clusters for; some have none (docs/xds.md)", "left-out", out)
	}
	c.clusters.warned = out > 0
}
