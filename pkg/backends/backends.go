// Package backends chooses the backends for the connections to a service, and their order. All consumers of the view
// use this one choice, for every protocol.
//
// [Choose] is a pure function of a global service, a port and the client. The backends in use ([services.Global.InUse])
// are divided into groups, best first, by these criteria, the strongest first:
//
//  1. the use of the cluster by the disconnect policy ([services.BackendUse]): backends of demoted
//     clusters come after all others, those of withdrawn ones count only when no other cluster has any;
//  2. the affinity of the own cluster's service (wire.md §4.4): the preferred side before the other;
//  3. the location of the backend, if the client's location is known: its node, its zone, elsewhere.
//
// Connections go to the first group that has a backend for them; the other groups are used when its backends fail. A
// backend that terminates and still serves takes no new connections while another backend does not terminate. It is
// listed as draining, so that its connections may finish. When all remaining backends terminate, they take new
// connections, as in Kubernetes. The choice differs from Cilium's in one point (§4.4): with the affinity remote,
// connections go to local backends that do not terminate, even if remote ones still terminate.
//
// An address comes once, even if several clusters claim it. The entry is chosen by these criteria: it does not
// terminate, then the better group, then the first cluster.
package backends

import (
	"cmp"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// Asker is the location of a client, used to prefer near backends. The own cluster is known from the service. Empty: no
// backend is near.
type Asker struct {
	Zone string // backends in it come before others of the same cluster or side
	Node string // backends on it come before others of the zone; only nodes of the own cluster count
}

// Choice is the backends for the connections to a service.
type Choice struct {
	Groups []Group // best first; each has a backend
}

// Group is backends that are equally good.
type Group struct {
	Use  services.BackendUse // of their clusters, by the disconnect policy
	Side Side                // by the affinity
	Near Nearness            // to the client
	// Backends take new connections, Draining only keep their present ones. Both are sorted by cluster and address.
	Backends, Draining []Backend
}

// Side is which of the two sides of an affinity a group is on.
type Side uint8

// The sides.
const (
	AnySide Side = iota // the affinity prefers none
	Local               // the own cluster
	Remote              // all other clusters
)

// String returns "any", "local" or "remote".
func (s Side) String() string { return [...]string{"any", "local", "remote"}[s] }

// Nearness is how near a group is to the client.
type Nearness uint8

// The nearest is first. Without the client's location, every backend is Anywhere.
const (
	SameNode Nearness = iota
	SameZone
	Anywhere
)

// String returns "node", "zone" or "anywhere".
func (n Nearness) String() string { return [...]string{"node", "zone", "anywhere"}[n] }

// Backend is one backend of a service, with the selected ports.
type Backend struct {
	Cluster  string
	Local    bool // of the own cluster
	IP       netip.Addr
	Other    netip.Addr      // the second address of its pod, only from [Choice.ByPod]; invalid when there is none, or it is not certain
	Ports    []services.Port // those that match, by number; must not be changed
	Hostname string          // empty when it has none
	Zone     string          // empty when it has none
	Node     string          // empty when it is not known
}

// String returns a description such as "10.1.0.7 of east (http 8080/TCP)".
func (b Backend) String() string {
	text := b.IP.String() + " of " + b.Cluster
	if len(b.Ports) == 0 {
		return text
	}
	ports := make([]string, len(b.Ports))
	for i, p := range b.Ports {
		ports[i] = strings.TrimSpace(fmt.Sprintf("%s %d/%s", p.Name, p.Port, p.Protocol))
	}
	return text + " (" + strings.Join(ports, ", ") + ")"
}

// Now returns the backends for new connections: those of the first group that has any. Empty when no group has any.
func (c Choice) Now() []Backend {
	for i := range c.Groups {
		if len(c.Groups[i].Backends) > 0 {
			return c.Groups[i].Backends
		}
	}
	return nil
}

// Choose returns the backends for connections to a port of a service. It leaves out a backend without this port, but
// for any port it keeps a backend without ports. A nil service has no backends.
func Choose(g *services.Global, port Port, from Asker) Choice {
	if g == nil {
		return Choice{}
	}
	var all []candidate
	ranks := ranksOf(g)
	port = port.within(g)
	for part, b := range Usable(g) {
		ports := port.of(b.Ports)
		if len(ports) == 0 && !port.Any() {
			continue
		}
		side, rank := ranks.side(part)
		all = append(all, candidate{
			Backend: Backend{
				Cluster: part.Cluster, Local: part.Local(), IP: b.IP, Ports: ports, Hostname: b.Hostname, Zone: b.Zone, Node: b.Node,
			},
			use: part.Use, side: side, rank: rank, near: from.nearness(part, &b), draining: b.Terminating(),
		})
	}
	if !slices.ContainsFunc(all, func(c candidate) bool { return !c.draining }) { // no other backends are left
		for i := range all {
			all[i].draining = false
		}
	}
	return group(once(all))
}

// Usable iterates over the backends of a service that can take connections to some port, each with the part of its
// cluster: an address comes once for each cluster that has it.
func Usable(g *services.Global) iter.Seq2[*services.Service, services.Backend] {
	ranks := ranksOf(g)
	return func(yield func(*services.Service, services.Backend) bool) {
		for part, b := range g.Backends() {
			if b.Usable() && !ranks.excludes(part) && !yield(part, b) {
				return
			}
		}
	}
}

// nearness returns how near a backend is to the client.
func (a Asker) nearness(part *services.Service, b *services.Backend) Nearness {
	switch {
	case a.Node != "" && a.Node == b.Node && part.Local():
		return SameNode
	case a.Zone != "" && a.Zone == b.Zone:
		return SameZone
	}
	return Anywhere
}

// candidate is a usable backend with the criteria of the choice.
type candidate struct {
	Backend
	use      services.BackendUse
	side     Side
	rank     uint8 // of the side: 0 for the preferred one
	near     Nearness
	draining bool
}

// compareGroups compares by the criteria that divide groups.
func compareGroups(a, b *candidate) int {
	return cmp.Or(cmp.Compare(a.use, b.use), cmp.Compare(a.rank, b.rank), cmp.Compare(a.near, b.near))
}

// once leaves one candidate for each address, and sorts by group, cluster and address.
func once(all []candidate) []candidate {
	better := func(a, b candidate) int {
		draining := 0
		if a.draining != b.draining {
			draining = -1
			if a.draining {
				draining = 1
			}
		}
		return cmp.Or(a.IP.Compare(b.IP), draining, compareGroups(&a, &b), strings.Compare(a.Cluster, b.Cluster))
	}
	slices.SortFunc(all, better)
	all = slices.CompactFunc(all, func(a, b candidate) bool { return a.IP == b.IP })
	slices.SortStableFunc(all, func(a, b candidate) int {
		return cmp.Or(compareGroups(&a, &b), strings.Compare(a.Cluster, b.Cluster))
	})
	return all
}

// group divides sorted backends into groups.
func group(sorted []candidate) (c Choice) {
	for i := range sorted {
		one := &sorted[i]
		if i == 0 || compareGroups(&sorted[i-1], one) != 0 {
			c.Groups = append(c.Groups, Group{Use: one.use, Side: one.side, Near: one.near})
		}
		g := &c.Groups[len(c.Groups)-1]
		if one.draining {
			g.Draining = append(g.Draining, one.Backend)
		} else {
			g.Backends = append(g.Backends, one.Backend)
		}
	}
	return c
}

// ranks has the ranks of the two sides of a service, by its affinity.
type ranks struct {
	alone         bool // the own cluster's service is not global: the other side is not used
	affinity      Side
	local, remote uint8
}

func ranksOf(g *services.Global) (r ranks) {
	l := g.Local()
	if l == nil {
		return r
	}
	r.alone = !l.UsesRemotes() || !g.Shared()
	switch g.Affinity() {
	case "local":
		r.affinity, r.remote = Local, 1
	case "remote":
		r.affinity, r.local = Remote, 1
	}
	return r
}

func (r ranks) excludes(part *services.Service) bool { return r.alone && !part.Local() }

func (r ranks) side(part *services.Service) (Side, uint8) {
	switch {
	case r.affinity == AnySide:
		return AnySide, 0
	case part.Local():
		return Local, r.local
	}
	return Remote, r.remote
}
