package xdsserver

import (
	"slices"
	"strconv"

	"github.com/mesh-agent/mesh-agent/internal/base/quota"
	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// Bounds of the clusters that an Envoy gets that takes all: one for each TCP port of each service.
const (
	maxPorts          = 128    // of one service; those of the own cluster first
	maxClusters       = 60_000 // that remote clusters bring, all together
	maxClustersOfPeer = 20_000 // that one remote cluster brings: that no other, earlier in the alphabet, has
)

// clusterList has the clusters of all services, while somebody wants everything. The lock of the
// catalog guards it.
type clusterList struct {
	clients int
	named   map[serviceName]map[string]string // cluster of Envoy to the remote cluster that brings it; empty: the own
	room    *quota.Quota[string]              // by remote cluster
	leftOut map[serviceName]int               // ports for which there is no room
	out     int                               // how many these are
	same    *body                             // all have it; nil before the first
	warned  bool                              // that some are left out
}

func newClusterList() *clusterList {
	return &clusterList{named: make(map[serviceName]map[string]string), room: quota.New[string](maxClusters, maxClustersOfPeer), leftOut: make(map[serviceName]int)}
}

// body is that of each cluster.
func (l *clusterList) body(c *catalog) *body {
	if l.same == nil {
		l.same = c.encode("clusters", func() (*body, error) { return newBody(cluster(c.outliers)) })
	}
	return l.same
}

// list notes the clusters of a service as they are now, adds those that are new, and returns those
// that are gone.
func (l *clusterList) list(c *catalog, s serviceName, g *services.Global, added map[string]*body) (gone []string) {
	ports, out := portsOf(s, g)
	now := make(map[string]string, len(ports))
	before := l.named[s]
	wanted := make(map[string]string, len(ports))
	for _, p := range ports {
		wanted[clusterName(s, strconv.Itoa(int(p.number)))] = p.from
	}
	for name, from := range before {
		if _, stays := wanted[name]; !stays || wanted[name] != from {
			l.give(from)
		} else {
			now[name] = from
		}
	}
	for _, p := range ports {
		name := clusterName(s, strconv.Itoa(int(p.number)))
		if _, is := now[name]; is {
			continue
		}
		if p.from != "" && l.room.Take(p.from, 1) != nil {
			out++
			continue
		}
		now[name] = p.from
		if _, was := before[name]; !was {
			added[name] = l.body(c)
		}
	}
	for name := range before {
		if _, is := now[name]; !is {
			gone = append(gone, name)
		}
	}
	set(l.named, s, now, len(now) > 0)
	l.out += out - l.leftOut[s]
	set(l.leftOut, s, out, out > 0)
	return gone
}

func (l *clusterList) give(from string) {
	if from != "" {
		l.room.Give(from, 1)
	}
}

// set puts a value into a map, or removes it.
func set[K comparable, V any](m map[K]V, key K, value V, is bool) {
	if is {
		m[key] = value
	} else {
		delete(m, key)
	}
}

// clear forgets everything, and returns what there was.
func (l *clusterList) clear() (gone []string) {
	for _, named := range l.named {
		for name, from := range named {
			l.give(from)
			gone = append(gone, name)
		}
	}
	clear(l.named)
	clear(l.leftOut)
	l.out = 0
	return gone
}

// broughtPort is a port of a service.
type broughtPort struct {
	number uint16
	from   string // the remote cluster that brings it; empty: the own
}

// portsOf has each TCP port of a service: of those that clients know, and of the backends where no cluster
// says which these are. Those of the own cluster come first, then by cluster and number. It also tells how
// many there are beyond the bound. A service whose name none can have has no ports: no client could follow it.
func portsOf(s serviceName, g *services.Global) (ports []broughtPort, out int) {
	if g == nil || !isLabel(s.namespace) || !isLabel(s.name) {
		return nil, 0
	}
	seen := make(map[uint16]struct{})
	note := func(part *services.Service, some []services.Port) {
		var numbers []uint16
		for _, p := range some {
			if _, is := seen[p.Port]; !is && (p.Protocol == "TCP" || p.Protocol == "") {
				seen[p.Port] = struct{}{}
				numbers = append(numbers, p.Port)
			}
		}
		from := part.Cluster
		if part.Local() {
			from = ""
		}
		slices.Sort(numbers)
		for _, n := range numbers {
			ports = append(ports, broughtPort{n, from})
		}
	}
	if own := g.Local(); own != nil {
		note(own, own.Ports)
	}
	for _, part := range g.Parts {
		if part.Offers() {
			note(part, part.Ports)
		}
	}
	if len(ports) == 0 {
		for part, b := range g.Backends() {
			note(part, b.Ports)
		}
	}
	if len(ports) > maxPorts {
		return ports[:maxPorts], len(ports) - maxPorts
	}
	return ports, 0
}

// followEverything makes the clusters of all services, for one more client.
func (c *catalog) followEverything() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.clusters.clients++; c.clusters.clients > 1 {
		return
	}
	added := make(map[string]*body)
	txn := c.view.DB.ReadTxn()
	for g := range c.view.Services.Global().All(txn) {
		if name := c.view.Services.ClientName(txn, g); name != "" {
			c.list(serviceName{g.Namespace, name}, g, added)
		}
	}
	c.all.update(added, nil)
	c.countLeftOut()
}

// unfollowEverything is for one client less.
func (c *catalog) unfollowEverything() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.clusters.clients--; c.clusters.clients > 0 {
		return
	}
	c.all.update(nil, c.clusters.clear())
	c.countLeftOut()
}

// list is that of the clusters, within the boundary; c.mu is held.
func (c *catalog) list(s serviceName, g *services.Global, added map[string]*body) (gone []string) {
	_ = c.boundary.Run(func() error {
		gone = c.clusters.list(c, s, g, added)
		return nil
	}, "service", clusterName(s, ""))
	return gone
}

// waiting are some of the services that have ports for which there was no room.
func (l *clusterList) waiting() (some []serviceName) {
	for s := range l.leftOut {
		if some = append(some, s); len(some) == maxRetried {
			break
		}
	}
	return some
}
