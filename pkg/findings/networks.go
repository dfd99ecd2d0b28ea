package findings

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/gaissmai/bart"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// networks finds pod networks that overlap with those of another cluster, and nodes whose addresses are in one. It uses
// the few prefixes that each node announces.
//
// There is one conflict for each pod network that is also another cluster's, or that contains any prefix of another
// cluster: a network that is too large is one mistake. The addresses of a node within the pod network of its own
// cluster add nothing when that network overlaps, and are left out.
type networks struct {
	stakes    map[string]*stake // by the node's key
	pods      bart.Table[[]*stake]
	machines  bart.Table[[]*stake]
	touched   map[netip.Prefix]bool // pod networks to be judged again
	steps     int                   // number of prefixes read in this look
	limit     int                   // about how many prefixes a look may read
	conflicts *conflictSet
}

// stake is the prefixes that a node announces. It is immutable.
type stake struct {
	cluster        string
	id             uint32
	source         wire.Source
	node           string
	pods, machines []netip.Prefix // the prefixes of machines are single addresses
}

func newNetworks() *networks {
	return &networks{stakes: make(map[string]*stake), touched: make(map[netip.Prefix]bool), limit: maxSteps, conflicts: newConflictSet()}
}

func stakeOf(n *nodes.Node) *stake {
	s := &stake{cluster: n.Cluster, id: n.ClusterID, source: n.Source, node: n.Name}
	for _, c := range n.Claims() {
		switch {
		case c.Role == nodes.RolePodCIDR:
			s.pods = append(s.pods, c.Prefix)
		case c.Role == nodes.RoleAddress && !c.HostIP.IsValid(): // outside of the pod network
			s.machines = append(s.machines, c.Prefix)
		}
	}
	return s
}

func (s *stake) equal(o *stake) bool {
	return s.cluster == o.cluster && s.id == o.id && s.source == o.source && s.node == o.node &&
		slices.Equal(s.pods, o.pods) && slices.Equal(s.machines, o.machines)
}

// compare orders the stakes in one prefix as the address cache orders its claims (wire.md §4.1): the one that counts is
// first.
func (s *stake) compare(o *stake) int {
	return cmp.Or(cmp.Compare(o.source, s.source), cmp.Compare(s.id, o.id), strings.Compare(s.cluster, o.cluster), strings.Compare(s.node, o.node))
}

// set takes in the present prefixes of a node.
func (d *networks) set(n *nodes.Node, deleted bool) {
	key := n.Key()
	old := d.stakes[key]
	var now *stake
	if !deleted {
		if now = stakeOf(n); old != nil && old.equal(now) {
			return
		}
	}
	if old != nil {
		d.enter(old, func(all []*stake, at int) []*stake { return slices.Delete(all, at, at+1) })
		delete(d.stakes, key)
	}
	if now != nil {
		d.stakes[key] = now
		d.enter(now, func(all []*stake, at int) []*stake { return slices.Insert(all, at, now) })
	}
}

// enter calls change for each prefix of a stake, with the stakes there and the index of this one, and touches the pod
// networks that equal or contain these prefixes.
func (d *networks) enter(s *stake, change func(all []*stake, at int) []*stake) {
	modify := func(t *bart.Table[[]*stake], p netip.Prefix) {
		t.Modify(p, func(all []*stake, _ bool) ([]*stake, bool) {
			at, _ := slices.BinarySearchFunc(all, s, (*stake).compare)
			all = change(all, at)
			return all, len(all) == 0
		})
	}
	for _, p := range s.pods {
		modify(&d.pods, p)
		d.touched[p] = true
		d.touch(p)
	}
	for _, p := range s.machines {
		modify(&d.machines, p)
		d.touch(p)
	}
}

// touch touches the pod networks that contain the prefix.
func (d *networks) touch(p netip.Prefix) {
	for outer := range d.pods.Supernets(p) {
		d.touched[outer] = true
	}
}

// maxSteps is about how many prefixes one look reads. A cluster can announce networks that contain all others, and
// change something in them all the time: the remaining networks are judged at the next look.
const maxSteps = 200_000

// look judges the touched networks.
func (d *networks) look(v *verdicts) {
	d.steps = 0
	for p := range d.touched {
		if d.steps > d.limit {
			break
		}
		delete(d.touched, p)
		subject := p.String()
		d.conflicts.set(key(KindPodCIDR, subject), d.overlap(p), v)
		d.conflicts.set(key(KindNodeIP, subject), d.intrusion(p), v)
	}
	d.conflicts.judgeMore(func(key string) {
		if p, err := netip.ParsePrefix(subjectOf(key)); err == nil {
			d.touched[p] = true
		}
	})
}

// overlap returns the conflict of a pod network with others that equal it or are in it; nil for none.
func (d *networks) overlap(p netip.Prefix) *Conflict {
	outer, _ := d.pods.Get(p)
	owners := parties(outer)
	inner := d.within(&d.pods, p, owners)
	if len(owners) == 0 || len(owners) == 1 && len(inner) == 0 {
		return nil
	}
	c := &Conflict{Kind: KindPodCIDR, Code: codes.PodCIDRConflict, Subject: p.String()}
	var texts []string
	if len(owners) > 1 {
		c.Clusters, c.Rule = names(owners), rule(owners[0], owners[1])
		texts = append(texts, fmt.Sprintf("%s is a pod network of %s; %s counts (%s)", p, list(c.Clusters), owners[0].cluster, c.Rule))
	} else {
		c.Rule = "the longest prefix counts"
	}
	if len(inner) > 0 {
		texts = append(texts, fmt.Sprintf("the pod network %s of %s contains %s; the longest prefix counts", p, list(names(owners)), tell(inner, "pod networks")))
		c.Clusters = union(c.Clusters, names(inner), names(owners))
	}
	c.Message = strings.Join(texts, "; ") + ". Give each cluster its own pod network"
	return c
}

// intrusion returns the conflict of a pod network with the addresses in it of other clusters' nodes; nil for none. An
// address that equals the whole network is a conflict of claims instead.
func (d *networks) intrusion(p netip.Prefix) *Conflict {
	outer, _ := d.pods.Get(p)
	owners := parties(outer)
	inner := d.within(&d.machines, p, owners)
	if len(owners) == 0 || len(inner) == 0 {
		return nil
	}
	return &Conflict{
		Kind: KindNodeIP, Code: codes.NodeIPConflict, Subject: p.String(), Clusters: union(names(inner), names(owners)),
		Rule: "the longest prefix counts, which is the node's address",
		Message: fmt.Sprintf("the pod network %s of %s contains %s; traffic for a pod with such an address goes to the node. Give nodes addresses outside of all pod networks",
			p, list(names(owners)), tell(inner, "node addresses")),
	}
}

// inside is the prefixes that one cluster has within another cluster's pod network.
type inside struct {
	*stake
	first netip.Prefix
	n     int
}

// within lists, by cluster, the prefixes inside p that collide with an owner of p, with the clusters in the order in
// which they count.
func (d *networks) within(t *bart.Table[[]*stake], p netip.Prefix, owners []*stake) []inside {
	if len(owners) == 0 {
		return nil
	}
	by := make(map[string]*inside)
	for q, stakes := range t.Subnets(p) {
		if d.steps++; q.Bits() == p.Bits() {
			continue
		}
		last := ""
		for _, s := range stakes { // stakes of one cluster are neighbours
			d.steps++
			if s.cluster == last || len(owners) == 1 && s.cluster == owners[0].cluster {
				continue
			}
			last = s.cluster
			in := by[s.cluster]
			if in == nil {
				in = &inside{stake: s, first: q}
				by[s.cluster] = in
			}
			in.n++
		}
	}
	all := make([]inside, 0, len(by))
	for _, in := range by {
		all = append(all, *in)
	}
	slices.SortFunc(all, func(a, b inside) int { return a.compare(b.stake) })
	return all
}

// parties returns the strongest stake of each cluster, the one that counts first.
func parties(sorted []*stake) []*stake {
	return slices.CompactFunc(slices.Clone(sorted), func(a, b *stake) bool { return a.cluster == b.cluster })
}

func rule(winner, other *stake) string {
	switch {
	case winner.source != other.source:
		return fmt.Sprintf("stronger source: %s precedes %s", winner.source, other.source)
	case winner.id != other.id:
		return fmt.Sprintf("cluster ID %d precedes %d", winner.id, other.id)
	}
	return fmt.Sprintf("cluster %s precedes %s", winner.cluster, other.cluster)
}

// names returns the names of the clusters that have the stakes.
func names[S interface{ clusterName() string }](all []S) []string {
	return printer.Texts(all, S.clusterName)
}

func (s *stake) clusterName() string { return s.cluster }

// tell formats a text such as "3 pod networks of b such as 10.0.1.0/24, and 10.0.9.0/24 of c".
func tell(all []inside, what string) string {
	return list(printer.Texts(all, func(in inside) string {
		if in.n > 1 {
			return fmt.Sprintf("%d %s of %s such as %s", in.n, what, in.cluster, in.first)
		}
		return fmt.Sprintf("%s of %s", in.first, in.cluster)
	}))
}

// union returns the names in their order, each once.
func union(lists ...[]string) []string {
	var all []string
	for _, names := range lists {
		for _, name := range names {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}
