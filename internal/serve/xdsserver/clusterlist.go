package xdsserver

import (
	"slices"
	"strconv"

	"github.com/mesh-agent/mesh-agent/internal/base/quota"
	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// Bounds of the clusters for an Envoy that takes all of them: one for each TCP port of each service.
const (
	maxPorts          = 128    // of one service; the ports of the own cluster come first
	maxClusters       = 60_000 // of all remote clusters together
	maxClustersOfPeer = 20_000 // of one remote cluster: only those that no earlier cluster in the alphabet has
)

// clusterList has the clusters of all services, as long as a client follows all of them. The lock of the catalog
// guards it.
type clusterList struct {
	clients int
	named   map[serviceName]map[string]string // cluster of Envoy to the remote cluster that adds it; empty: the own
	room    *quota.Quota[string]              // by remote cluster
	leftOut map[serviceName]int               // number of ports without room, by service
	out     int                               // sum of leftOut
	same    *body                             // the body that all of them have; nil before the first
	warned  bool                              // the log has a warning that some are left out
}

func newClusterList() *clusterList {
	return &clusterList{named: make(map[serviceName]map[string]string), room: quota.New[string](maxClusters, maxClustersOfPeer), leftOut: make(map[serviceName]int)}
}

// body returns the body of a cluster, which is the same for all.
func (l *clusterList) body(c *catalog) *body {
	if l.same == nil {
		l.same = c.encode("clusters", func() (*body, error) { return newBody(cluster(c.outliers)) })
	}
	return l.same
}

// list updates the clusters of a service, adds the new ones to added, and returns the removed ones.
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
		if p.from != "" && l.room.Reserve(p.from, 1) != nil {
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
		l.room.Release(from, 1)
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

// clear removes everything, and returns the removed clusters.
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
	from   string // the remote cluster that adds it; empty: the own
}

// portsOf returns each TCP port of a service: the ports that clients use, or those of the backends when no cluster
// gives any. The ports of the own cluster come first, then the others by cluster and number. It also returns how many
// ports are above the bound. A service whose name is not valid in Kubernetes has no ports: no client could follow it.
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

// followEverything counts one more client that follows the clusters of all services, and makes these clusters for the
// first one.
func (c *catalog) followEverything() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.clusters.clients++; c.clusters.clients > 1 {
		return
	}
	added := make(map[string]*body)
	txn := c.view.ReadTxn()
	for g := range c.view.Services.Global().All(txn) {
		if name := c.view.Services.ClientName(txn, g); name != "" {
			c.list(serviceName{g.Namespace, name}, g, added)
		}
	}
	c.all.update(added, nil)
	c.countLeftOut()
}

// unfollowEverything counts one client fewer, and removes the clusters after the last one.
func (c *catalog) unfollowEverything() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.clusters.clients--; c.clusters.clients > 0 {
		return
	}
	c.all.update(nil, c.clusters.clear())
	c.countLeftOut()
}

// list calls [clusterList.list] within the boundary; c.mu is held.
func (c *catalog) list(s serviceName, g *services.Global, added map[string]*body) (gone []string) {
	_ = c.boundary.Run(func() error {
		gone = c.clusters.list(c, s, g, added)
		return nil
	}, "service", clusterName(s, ""))
	return gone
}

// waiting returns some of the services that have ports without room, at most maxRetried.
func (l *clusterList) waiting() (some []serviceName) {
	for s := range l.leftOut {
		if some = append(some, s); len(some) == maxRetried {
			break
		}
	}
	return some
}
