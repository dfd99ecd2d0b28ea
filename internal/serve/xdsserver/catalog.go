package xdsserver

import (
	"cmp"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/cilium/statedb"
	"golang.org/x/time/rate"

	"github.com/mesh-agent/mesh-agent/internal/base/boundary"
	"github.com/mesh-agent/mesh-agent/pkg/backends"
	"github.com/mesh-agent/mesh-agent/pkg/view"
)

// catalog has the resources that at least one client follows, and no others. Its caches find the resources to send to
// each client, and keep the encoded bytes of a resource once for all clients.
//
// Each resource is made and encoded alone. If that fails, the resource is left out, or stays as it was, and the error
// is reported. No other resource is affected.
type catalog struct {
	view     *view.View
	asker    backends.Asker
	outliers time.Duration // interval of outlier detection in clients; 0: none
	naming   naming
	boundary *boundary.Boundary
	metrics  *Metrics
	log      *slog.Logger
	saying   *rate.Limiter // of messages about resources that are left out

	named [kinds]*resourceCache // resources that are followed by name
	none  [kinds]*resourceCache // always empty: for clients that follow everything of a kind other than clusters
	all   *resourceCache        // the clusters of all services, as long as a client follows all of them

	kept *amount // bytes for clients: names that streams follow, and the resources for them
	sent *amount // bytes of answers that clients have not confirmed

	turns    turns      // of streams that follow and unfollow; taken before mu
	mu       sync.Mutex // taken before those of the caches
	follows  [kinds]map[string]*holding
	targets  map[serviceName]map[target]*assigned
	clusters *clusterList
	held     map[serviceName]struct{} // services with an assignment that is held back
	leftOut  int                      // backends that assignments have no room for
}

// assigned is the assignment of a target that at least one client follows.
type assigned struct {
	target
	holding
	names map[string]struct{} // the names under which clients follow it
	now   *body               // nil: it is held back
}

// newCatalog returns an empty catalog. All versions of this process begin with the prefix. A client that has a version
// of another process counts as one that has nothing (xds.md A6).
func newCatalog(p Params, prefix string) *catalog {
	c := &catalog{
		view: p.View, asker: p.Asker, outliers: p.Outliers, naming: newNaming(p.Zones), boundary: p.Boundary, metrics: p.Metrics, log: p.Log, saying: rate.NewLimiter(1, 10),
		kept: newAmount(cmp.Or(p.Memory, DefaultMemory)), sent: newAmount(cmp.Or(p.Memory, DefaultMemory) / 2),
		targets: make(map[serviceName]map[target]*assigned), clusters: newClusterList(), held: make(map[serviceName]struct{}),
	}
	for k := range kinds {
		c.named[k], c.none[k], c.follows[k] = newResourceCache(k, prefix), newResourceCache(k, prefix), make(map[string]*holding)
	}
	c.all = newResourceCache(clusterKind, prefix)
	c.all.unread = c.unread
	return c
}

// follow adds one client of an owner to each of these names, and makes the resources that are new. After an error,
// none of the names is followed.
func (c *catalog) follow(owner netip.Addr, take taking, k kind, names []string) (err error) {
	done := 0
	for some := range slices.Chunk(names, namesAtOnce) {
		if err = c.followSome(owner, take, k, some); err != nil {
			break
		}
		done += len(some)
	}
	if err != nil {
		c.unfollow(owner, k, names[:done])
	}
	return err
}

func (c *catalog) followSome(owner netip.Addr, take taking, k kind, names []string) error {
	defer c.turns.take(owner)()
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.countNames(k)
	added := make(map[string]*body)
	txn := c.view.ReadTxn()
	for i, name := range names {
		b, err := c.join(txn, owner, take, k, name)
		if err != nil {
			c.leave(owner, k, names[:i])
			return err
		}
		if b != nil {
			added[name] = b
		}
	}
	c.named[k].update(added, nil)
	return nil
}

// join adds one client to a name, and returns the resource if the cache must add it, else nil. c.mu is held.
func (c *catalog) join(txn statedb.ReadTxn, owner netip.Addr, take taking, k kind, name string) (*body, error) {
	t, ok := c.naming.parse(name)
	h := c.follows[k][name]
	known := h != nil
	var b *body
	if !known {
		h = new(holding)
		b = c.make(k, name, ok)
	}
	if err := h.join(take, owner, resourceOverhead+int64(len(name))+int64(b.ownBytes(k))); err != nil {
		return nil, err
	}
	c.follows[k][name] = h
	if k != endpointKind || !ok {
		return b, nil
	}
	b, err := c.assign(txn, owner, take, name, t)
	if err != nil {
		c.leaveName(owner, k, name)
		return nil, err
	}
	if known {
		return nil, nil
	}
	return b, nil
}

// ownBytes is the number of bytes of a resource that are not shared with other names.
func (b *body) ownBytes(k kind) int {
	if b == nil || k == clusterKind || k == endpointKind {
		return 0
	}
	return len(b.bytes)
}

// make makes any resource but the assignment of a valid target. It returns nil when there is no such cluster, or the
// resource cannot be made. A name that is not valid for a service has no route and no endpoints. valid reports whether
// the name is valid. c.mu is held.
func (c *catalog) make(k kind, name string, valid bool) *body {
	switch {
	case k == endpointKind && valid, k == clusterKind && !valid:
		return nil
	case k == clusterKind:
		return c.clusters.body(c)
	}
	return c.encode(name, func() (*body, error) {
		switch k {
		case listenerKind:
			l, err := c.naming.listener(name)
			if err != nil {
				return nil, err
			}
			return newBody(l)
		case routeKind:
			return newBody(c.naming.routes(name))
		}
		return newBody(assignment(backends.Choice{}, false)) // a cluster in Envoy's own configuration waits for it (xds.md A7)
	})
}

// encode makes a resource within the boundary; it returns nil when that fails.
func (c *catalog) encode(name string, make func() (*body, error)) (b *body) {
	err := c.boundary.Run(func() (err error) {
		b, err = make()
		c.boundary.Report(err, "resource", name)
		return nil
	}, "resource", name)
	if err != nil {
		return nil
	}
	return b
}

// assign adds one client to a target, under a name, and returns the assignment; nil when it is held back. c.mu is
// held.
func (c *catalog) assign(txn statedb.ReadTxn, owner netip.Addr, take taking, name string, t target) (*body, error) {
	a := c.targets[t.service][t]
	known := a != nil
	if !known {
		a = &assigned{target: t, names: make(map[string]struct{})}
		if now := c.choose(txn, t, maxAssignment); now != nil && !c.hold(now) {
			a.now = now
			if now.usable == 0 && c.saying.Allow() {
				why := whyNone(c.view.Services.Find(txn, t.service.namespace, t.service.name, nil), t.port)
				c.log.Warn("An xDS client follows a name without backends, so its calls fail", "name", clusterName(t.service, t.port), "reason", why)
			}
		}
	}
	if err := a.join(take, owner, resourceOverhead+int64(a.now.length())); err != nil {
		return nil, err
	}
	a.names[name] = struct{}{}
	if known {
		return a.now, nil
	}
	if c.targets[t.service] == nil {
		c.targets[t.service] = make(map[target]*assigned)
	}
	c.targets[t.service][t] = a
	if a.now == nil {
		c.held[t.service] = struct{}{}
	}
	c.note(a, nil, a.now)
	c.countLeftOut()
	return a.now, nil
}

// choose makes the assignment of a target, with at most this many bytes; it returns nil when that fails.
func (c *catalog) choose(txn statedb.ReadTxn, t target, most int) *body {
	return c.encode(clusterName(t.service, t.port), func() (*body, error) {
		g := c.view.Services.Find(txn, t.service.namespace, t.service.name, nil) // nil when no cluster has it
		all := backends.Choose(g, backends.ParsePort(t.port), c.asker)
		choice, out := bounded(all.ByPod(t.service.namespace, c.view.Pod), most)
		a := assignment(choice, t.port == "")
		b, err := newBody(a)
		if err == nil {
			b.usable, b.leftOut, b.dual = usable(a), out, all.DualStack()
		}
		return b, err
	})
}

// unfollow removes one client of an owner from each of these names, and the resources that have no clients left.
func (c *catalog) unfollow(owner netip.Addr, k kind, names []string) {
	for some := range slices.Chunk(names, namesAtOnce) {
		c.unfollowSome(owner, k, some)
	}
}

func (c *catalog) unfollowSome(owner netip.Addr, k kind, names []string) {
	defer c.turns.take(owner)()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leave(owner, k, names)
	c.countNames(k)
}

// leave is like unfollow; c.mu is held.
func (c *catalog) leave(owner netip.Addr, k kind, names []string) {
	var gone []string
	for _, name := range names {
		if c.leaveName(owner, k, name) {
			gone = append(gone, name)
		}
		t, ok := c.naming.parse(name)
		if a := c.targets[t.service][t]; ok && k == endpointKind && a != nil {
			c.release(owner, a, name)
		}
	}
	if len(gone) > 0 {
		c.named[k].update(nil, gone)
	}
}

// leaveName removes one client from a name, and reports whether the name has no clients left; c.mu is held.
func (c *catalog) leaveName(owner netip.Addr, k kind, name string) (last bool) {
	h := c.follows[k][name]
	if h == nil || !h.leave(c.kept, owner) {
		return false
	}
	delete(c.follows[k], name)
	return true
}

// release removes a client from a target; c.mu is held.
func (c *catalog) release(owner netip.Addr, a *assigned, name string) {
	if c.follows[endpointKind][name] == nil {
		delete(a.names, name)
	}
	if !a.leave(c.kept, owner) {
		return
	}
	c.note(a, a.now, nil)
	c.countLeftOut()
	delete(c.targets[a.service], a.target)
	if len(c.targets[a.service]) == 0 {
		delete(c.targets, a.service)
		delete(c.held, a.service)
	}
}

// countNames sets the metric of the names of a kind that are followed; c.mu is held.
func (c *catalog) countNames(k kind) {
	c.metrics.names.WithLabelValues(k.String()).Set(float64(len(c.follows[k])))
}

// without returns those of the names that have no usable backend now, sorted.
func (c *catalog) without(names []string) (all []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		t, _ := c.naming.parse(name)
		if a := c.targets[t.service][t]; a == nil || a.now.numUsable() == 0 {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}
