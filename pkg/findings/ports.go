package findings

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// ports finds services on whose ports the clusters disagree: on names and protocols, which are used to join backends to
// a port of a service (wire.md §4.4). Port numbers may differ between pods. A cluster without backends is not compared,
// and neither is a service of the own cluster that has nothing to do with those of other clusters.
type ports struct{ conflicts *conflictSet }

// set judges a service after a change or its deletion.
func (d *ports) set(g *services.Global, deleted bool, v *verdicts) {
	var c *Conflict
	if !deleted {
		c = portConflict(g)
	}
	d.conflicts.set(key(KindServicePort, g.FullName()), c, v)
}

// offer is the ports that a cluster has in a service.
type offer struct {
	part  *services.Service
	ports []portName // sorted, no duplicates
}

// portName identifies a port for joining.
type portName struct{ name, protocol string }

func (p portName) compare(o portName) int {
	return cmp.Or(strings.Compare(p.name, o.name), strings.Compare(p.protocol, o.protocol))
}

func (p portName) String() string {
	if p.name == "" {
		return "the unnamed port (" + p.protocol + ")"
	}
	return fmt.Sprintf("port %s (%s)", p.name, p.protocol)
}

// portConflict returns the conflict of a service; nil when the clusters agree.
func portConflict(g *services.Global) *Conflict {
	if len(g.Parts) < 2 {
		return nil
	}
	offers := offersOf(g)
	if len(offers) < 2 || !slices.ContainsFunc(offers, func(o offer) bool { return !slices.Equal(o.ports, offers[0].ports) }) {
		return nil
	}
	c := &Conflict{Kind: KindServicePort, Code: codes.ServicePortConflict, Subject: g.FullName()}
	for _, o := range offers {
		c.Clusters = append(c.Clusters, o.part.Cluster)
	}
	c.Rule = "a service has the ports that its own cluster gives it"
	if !offers[0].part.Local() {
		c.Rule = "here is no such global service, so nothing uses it; the lowest cluster ID comes first"
	}
	c.Message = fmt.Sprintf("%s: %s. Traffic to a port goes only to the clusters that have it under that name and protocol: give the service the same ports in each cluster",
		g.FullName(), differences(offers))
	return c
}

// offersOf lists the clusters with backends, the own one first and then by their IDs.
func offersOf(g *services.Global) []offer {
	var offers []offer
	for _, p := range g.Parts {
		if (p.Shared || p.Local() && p.IncludeExternal) && len(p.Backends) > 0 {
			offers = append(offers, offer{p, portsOf(p.Backends)})
		}
	}
	slices.SortStableFunc(offers, func(a, b offer) int {
		switch {
		case a.part.Local() == b.part.Local():
			return cmp.Compare(a.part.ClusterID, b.part.ClusterID)
		case a.part.Local():
			return -1
		}
		return 1
	})
	return offers
}

func portsOf(backends []services.Backend) []portName {
	var all []portName
	var last []services.Port
	for _, b := range backends {
		if len(b.Ports) > 0 && len(b.Ports) == len(last) && &b.Ports[0] == &last[0] {
			continue // shares its ports with the previous backend, as usual
		}
		last = b.Ports
		for _, p := range b.Ports {
			n := portName{p.Name, p.Protocol}
			if at, there := slices.BinarySearchFunc(all, n, portName.compare); !there {
				all = slices.Insert(all, at, n)
			}
		}
	}
	return all
}

// maxDifferences is how many ports of one service a message names.
const maxDifferences = 3

// differences lists the ports that only some of the clusters have.
func differences(offers []offer) string {
	var all []portName
	for _, o := range offers {
		all = append(all, o.ports...)
	}
	slices.SortFunc(all, portName.compare)
	all = slices.Compact(all)
	var texts []string
	for _, p := range all {
		var with, without []string
		for _, o := range offers {
			if slices.Contains(o.ports, p) {
				with = append(with, o.part.Cluster)
			} else {
				without = append(without, o.part.Cluster)
			}
		}
		if len(without) > 0 {
			texts = append(texts, fmt.Sprintf("%s is in %s, not in %s", p, list(with), list(without)))
		}
	}
	if n := len(texts) - maxDifferences; n > 0 {
		texts = append(texts[:maxDifferences], fmt.Sprintf("%d more", n))
	}
	return strings.Join(texts, "; ")
}
