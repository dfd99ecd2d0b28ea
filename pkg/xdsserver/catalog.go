package xdsserver

import (
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"google.golang.org/protobuf/proto"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/pkg/backends"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/view"
)

// maxFollowed bounds how many different names all clients follow together.
const maxFollowed = 100_000

var errTooMany = errors.New("too many different names are followed")

// catalog has the resources that somebody follows, and no others. Its caches find out what a client
// has to be sent, and keep each resource's bytes for all of them.
type catalog struct {
	view   *view.View
	asker  backends.Asker
	naming naming
	prefix string // of versions
	log    *slog.Logger

	named [kinds]*cache.LinearCache // what is followed by its name
	none  [kinds]*cache.LinearCache // for those who want everything of a kind that is not given so
	all   *cache.LinearCache        // the clusters of all services, while somebody wants everything

	mu        sync.Mutex // before those of the caches
	followers [kinds]map[string]int
	endpoints map[serviceName]map[string]*followed // assignments, by name
	followAll int                                  // clients of all
	clusters  map[serviceName][]string             // in all
	held      map[serviceName]struct{}             // those that have an assignment which is held back
}

// followed is an assignment that somebody follows.
type followed struct {
	target
	now *endpointv3.ClusterLoadAssignment // nil: held back
}

// newCatalog returns an empty one. The prefix is of the versions of this process: a client that has a
// version of another one knows nothing (xds.md A6).
func newCatalog(v *view.View, asker backends.Asker, n naming, prefix string, log *slog.Logger) *catalog {
	c := &catalog{view: v, asker: asker, naming: n, prefix: prefix, log: log, endpoints: make(map[serviceName]map[string]*followed), clusters: make(map[serviceName][]string), held: make(map[serviceName]struct{})}
	linear := func(k kind) *cache.LinearCache { return cache.NewLinearCache(k.url(), cache.WithVersionPrefix(prefix)) }
	for k := range kinds {
		c.named[k], c.none[k], c.followers[k] = linear(k), linear(k), make(map[string]int)
	}
	c.all = linear(clusterKind)
	return c
}

// follow makes what is followed from now on, each by one more client.
func (c *catalog) follow(k kind, names []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var fresh []string
	for _, name := range names {
		if c.followers[k][name]++; c.followers[k][name] == 1 {
			fresh = append(fresh, name)
		}
	}
	if c.numNames() > maxFollowed {
		return errTooMany // the stream ends, and lets go of them
	}
	added := make(map[string]types.Resource)
	txn := c.view.DB.ReadTxn()
	for _, name := range fresh {
		r, err := c.make(txn, k, name)
		if err != nil {
			return err
		}
		if r != nil {
			added[name] = r
		}
	}
	if len(added) == 0 {
		return nil
	}
	return c.named[k].UpdateResources(added, nil)
}

// make makes a resource that nobody has followed; nil when there is no such cluster, or what it stands for is
// held back. A name that no service can have has no route and no endpoints. c.mu is held.
func (c *catalog) make(txn statedb.ReadTxn, k kind, name string) (types.Resource, error) {
	if k == listenerKind {
		return c.naming.listener(name)
	}
	t, ok := c.naming.parse(name)
	switch {
	case k == routeKind:
		return c.naming.routes(name), nil
	case !ok && k == endpointKind: // a cluster of Envoy's own configuration waits for an answer (xds.md A7)
		return assignment(name, t, backends.Choice{}), nil
	case !ok:
		return nil, nil
	case k == clusterKind:
		return cluster(name), nil
	}
	f := &followed{target: t}
	if now := c.choose(txn, name, t); !c.hold(now) {
		f.now = now
	}
	if c.endpoints[t.service] == nil {
		c.endpoints[t.service] = make(map[string]*followed)
	}
	c.endpoints[t.service][name] = f
	if f.now == nil {
		c.held[t.service] = struct{}{}
		return nil, nil
	}
	return f.now, nil
}

func (c *catalog) choose(txn statedb.ReadTxn, name string, t target) *endpointv3.ClusterLoadAssignment {
	g, _, _ := c.view.Services.Global().Get(txn, services.GlobalByName(t.service.namespace, t.service.name)) // nil when nobody has it
	return assignment(name, t, backends.Choose(g, backends.ParsePort(t.port), c.asker))
}

// unfollow lets go of what nobody follows any more.
func (c *catalog) unfollow(k kind, names []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var gone []string
	for _, name := range names {
		if c.followers[k][name]--; c.followers[k][name] > 0 {
			continue
		}
		delete(c.followers[k], name)
		gone = append(gone, name)
		if t, ok := c.naming.parse(name); ok && k == endpointKind {
			delete(c.endpoints[t.service], name)
			if len(c.endpoints[t.service]) == 0 {
				delete(c.endpoints, t.service)
				delete(c.held, t.service)
			}
		}
	}
	if len(gone) == 0 {
		return nil
	}
	return c.named[k].UpdateResources(nil, gone)
}

// followEverything makes the clusters of all services, for one more client.
func (c *catalog) followEverything() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.followAll++; c.followAll > 1 {
		return nil
	}
	added := make(map[string]types.Resource)
	for g := range c.view.Services.Global().All(c.view.DB.ReadTxn()) {
		c.list(serviceName{g.Namespace, g.Name}, g, added)
	}
	return c.all.UpdateResources(added, nil)
}

func (c *catalog) unfollowEverything() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.followAll--; c.followAll > 0 {
		return nil
	}
	var gone []string
	for _, names := range c.clusters {
		gone = append(gone, names...)
	}
	clear(c.clusters)
	return c.all.UpdateResources(nil, gone)
}

// list notes the clusters of a service as they are now, adds those that are new, and returns those
// that are gone. c.mu is held.
func (c *catalog) list(s serviceName, g *services.Global, added map[string]types.Resource) (gone []string) {
	before, now := c.clusters[s], clustersOf(s, g)
	for _, name := range now {
		if !slices.Contains(before, name) {
			added[name] = cluster(name)
		}
	}
	for _, name := range before {
		if !slices.Contains(now, name) {
			gone = append(gone, name)
		}
	}
	if len(now) == 0 {
		delete(c.clusters, s)
	} else {
		c.clusters[s] = now
	}
	return gone
}

// clustersOf has a name for each TCP port of a service, by number: of those that clients know, and
// of the backends where no cluster says which these are.
func clustersOf(s serviceName, g *services.Global) []string {
	if g == nil {
		return nil
	}
	var numbers []uint16
	note := func(ports []services.Port) {
		for _, p := range ports {
			if p.Protocol == "TCP" || p.Protocol == "" {
				numbers = append(numbers, p.Port)
			}
		}
	}
	for _, part := range g.Parts {
		if part.Offers() || part.Local() {
			note(part.Ports)
		}
	}
	if len(numbers) == 0 {
		for _, b := range g.Backends() {
			note(b.Ports)
		}
	}
	slices.Sort(numbers)
	var names []string
	for _, n := range slices.Compact(numbers) {
		names = append(names, clusterName(s, strconv.Itoa(int(n))))
	}
	return names
}

// update looks at services again, at all of them when changed is nil. What comes out as it was is not
// sent. Clusters that are gone go before their endpoints, new ones come after them (xds.md A6).
func (c *catalog) update(changed map[serviceName]struct{}) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	txn := c.view.DB.ReadTxn()
	endpoints, clusters := make(map[string]types.Resource), make(map[string]types.Resource)
	var gone []string
	if changed == nil {
		changed = make(map[serviceName]struct{})
		for s := range c.endpoints {
			changed[s] = struct{}{}
		}
		if c.followAll > 0 {
			for s := range c.clusters {
				changed[s] = struct{}{}
			}
			for g := range c.view.Services.Global().All(txn) {
				changed[serviceName{g.Namespace, g.Name}] = struct{}{}
			}
		}
	}
	for s := range changed {
		delete(c.held, s)
		for name, f := range c.endpoints[s] {
			now := c.choose(txn, name, f.target)
			switch {
			case proto.Equal(now, f.now):
			case f.now == nil && c.hold(now):
				c.held[s] = struct{}{}
			default:
				c.report(name, f.now, now)
				f.now, endpoints[name] = now, now
			}
		}
		if c.followAll > 0 {
			g, _, _ := c.view.Services.Global().Get(txn, services.GlobalByName(s.namespace, s.name))
			gone = append(gone, c.list(s, g, clusters)...)
		}
	}
	var failed error
	if len(gone) > 0 {
		failed = errors.Join(failed, c.all.UpdateResources(nil, gone))
	}
	if len(endpoints) > 0 {
		failed = errors.Join(failed, c.named[endpointKind].UpdateResources(endpoints, nil))
	}
	if len(clusters) > 0 {
		failed = errors.Join(failed, c.all.UpdateResources(clusters, nil))
	}
	return failed
}

// report says when a service has lost its last backend, or has one again: clients cannot tell why
// their calls fail.
func (c *catalog) report(name string, before, now *endpointv3.ClusterLoadAssignment) {
	switch usedTo, has := usable(before) > 0, usable(now) > 0; {
	case usedTo && !has:
		c.log.Warn("A service that xDS clients follow no longer has backends", "name", name)
	case has && !usedTo:
		c.log.Info("A service that xDS clients follow has backends", "name", name)
	}
}

// numNames is how many names are followed; c.mu is held.
func (c *catalog) numNames() (n int) {
	for k := range kinds {
		n += len(c.followers[k])
	}
	return n
}

// names are how many names of each kind are followed.
func (c *catalog) names() (n [kinds]int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := range kinds {
		n[k] = len(c.followers[k])
	}
	return n
}

// without are those of some names that lead to no backend now, sorted.
func (c *catalog) without(names []string) (all []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		t, _ := c.naming.parse(name)
		if f := c.endpoints[t.service][name]; f == nil || usable(f.now) == 0 {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}
