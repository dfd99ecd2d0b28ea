package findings

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
)

// An answer that returned after an absence counts as evidence for twice the duration of the absence, but for no less
// than nameWindow and no more than maxNameWindow.
const (
	nameWindow    = 10 * time.Minute
	maxNameWindow = 24 * time.Hour
)

// maxSightings is how many sightings of one name are kept.
const maxSightings = 32

// clusterNames finds names for which several clusters answer: the endpoints of one client file lead to different
// clusters, or two clusters write into one etcd. The evidence is that the answers alternate: an answer of one cluster,
// then one of another, then the first one again. Answers are of different clusters when their cluster IDs differ, or
// when both list some nodes and have none in common. One more alternation is required within one etcd, where the ID may
// have been set wrongly for a moment, and when the first cluster is seen again with another etcd.
//
// Replicas of one clustermesh-apiserver (other etcds, the same ID and nodes), an etcd that was rebuilt or restored, and
// an ID that was changed are no conflicts: none of these returns to the previous answer. A move to another cluster that
// is undone looks like a conflict for as long as the answer counts. Three cases are not detected: a second cluster
// while the connection stays with the first, an answer that is replaced before the next look, and clones with equal IDs
// of fewer than [minNodes] nodes. Heartbeats prove nothing: a mirror and an apiserver may both write that of one etcd.
//
// The conflict ends when no returned answer counts any longer, or when the client file has other endpoints.
type clusterNames struct {
	seed   maphash.Seed
	trails map[string]*trail
}

// trail is the answers for one name.
type trail struct {
	endpoints string
	sightings []sighting // the oldest first; neighbours differ in etcd or ID
}

// sighting is an answer, with the first and the last time that it was seen.
type sighting struct {
	etcd        string
	id          uint32
	nodes       sketch    // as of the time in asked; none until everything was listed
	asked       time.Time // zero until then
	first, last time.Time
}

func newClusterNames() *clusterNames {
	return &clusterNames{seed: maphash.MakeSeed(), trails: make(map[string]*trail)}
}

// look takes in the status of the clusters, and returns the present conflicts. The nodes of a cluster are read once
// they are listed, and then again every nameWindow.
func (d *clusterNames) look(now time.Time, clusters []remotecluster.Status, nodesOf func(string) []*nodes.Node) []*Conflict {
	var conflicts []*Conflict
	present := make(map[string]bool, len(clusters))
	for i := range clusters {
		c := &clusters[i]
		present[c.Name] = true
		t := d.trails[c.Name]
		if t == nil {
			t = new(trail)
			d.trails[c.Name] = t
		}
		if endpoints := strings.Join(c.Endpoints, ","); endpoints != t.endpoints {
			t.endpoints, t.sightings = endpoints, nil
		}
		// Its configuration was read. This is also true when the cluster is refused because another cluster has its ID.
		if c.Connected && c.AnsweredID != 0 {
			current := t.see(now, c.EtcdClusterID, c.AnsweredID)
			if c.Ready && (current.asked.IsZero() || now.Sub(current.asked) >= nameWindow) {
				current.nodes, current.asked = d.sketch(nodesOf(c.Name)), now
			}
		}
		if t.alternates(now) {
			conflicts = append(conflicts, nameConflict(c.Name, t.sightings))
		}
	}
	for name := range d.trails {
		if !present[name] {
			delete(d.trails, name)
		}
	}
	return conflicts
}

// see stores an answer, and returns its sighting.
func (t *trail) see(now time.Time, etcd string, id uint32) *sighting {
	if n := len(t.sightings); n == 0 || t.sightings[n-1].etcd != etcd || t.sightings[n-1].id != id {
		t.sightings = append(t.sightings, sighting{etcd: etcd, id: id, first: now})
		t.trim()
	}
	current := &t.sightings[len(t.sightings)-1]
	current.last = now
	return current
}

// trim keeps the bound: it removes the first sighting whose answer was seen again before the newest sighting, so that
// rare answers are not lost because of frequent ones. When there is none, it removes the oldest sighting.
func (t *trail) trim() {
	if len(t.sightings) <= maxSightings {
		return
	}
	gone := max(0, slices.IndexFunc(t.sightings[:maxSightings/2], func(s sighting) bool {
		again := 0
		for i := range t.sightings[:len(t.sightings)-1] {
			if t.sightings[i].etcd == s.etcd && t.sightings[i].id == s.id {
				again++
			}
		}
		return again > 1
	}))
	t.sightings = slices.Delete(t.sightings, gone, gone+1)
	if gone > 0 && gone < len(t.sightings) { // the neighbours may have the same answer now
		if a, b := &t.sightings[gone-1], t.sightings[gone]; a.etcd == b.etcd && a.id == b.id {
			a.last, a.nodes, a.asked = b.last, b.nodes, b.asked
			t.sightings = slices.Delete(t.sightings, gone, gone+1)
		}
	}
}

// alternates reports whether an answer returned after one of another cluster, and this still counts.
func (t *trail) alternates(now time.Time) bool {
	weight := 0
	for k := range t.sightings {
		for i := k - 2; i >= 0; i-- {
			again, back := &t.sightings[i], &t.sightings[k]
			if again.id != back.id || again.foreign(back) {
				continue
			}
			away := back.first.Sub(again.last)
			if now.Sub(back.first) < min(max(nameWindow, 2*away), maxNameWindow) {
				weight += back.weight(again, t.sightings[i+1:k])
			}
			break
		}
	}
	return weight >= 2
}

// weight returns how strong the evidence is that an answer returned after those between: 2 is enough for a conflict.
func (s *sighting) weight(before *sighting, between []sighting) int {
	weight := 0
	for i := range between {
		switch other := &between[i]; {
		case !other.foreign(s):
		case s.etcd == before.etcd && other.etcd != s.etcd:
			return 2
		default:
			weight = 1
		}
	}
	return weight
}

// foreign reports whether the two answers are from different clusters.
func (s *sighting) foreign(o *sighting) bool { return s.id != o.id || s.nodes.disjoint(o.nodes) }

func nameConflict(name string, sightings []sighting) *Conflict {
	var answers []string
	for _, s := range sightings {
		if text := fmt.Sprintf("cluster ID %d in etcd %s", s.id, s.etcd); !slices.Contains(answers, text) {
			answers = append(answers, text)
		}
	}
	slices.Sort(answers)
	return &Conflict{
		Kind: KindClusterName, Code: codes.ClusterNameConflict, Subject: name, Clusters: []string{name},
		Rule: "the last answer counts",
		Message: fmt.Sprintf("different clusters answer to the name %s in turn: %s. Its data changes with each connection: check where its endpoints lead, and give each cluster its own name",
			name, list(answers)),
	}
}

// minNodes is how many nodes an answer must list before its nodes can distinguish it from another one.
const minNodes = 3

// sketch represents the nodes of an answer: the smallest of their hashes. Answers with many common nodes have some of
// these in common.
type sketch []uint64

const sketchSize = 32

func (d *clusterNames) sketch(all []*nodes.Node) sketch {
	hashes := make(sketch, 0, len(all))
	for _, n := range all {
		sum := maphash.String(d.seed, n.Name)
		for _, a := range n.Addresses {
			sum += maphash.Comparable(d.seed, a)
		}
		hashes = append(hashes, sum)
	}
	slices.Sort(hashes)
	return slices.Clone(hashes[:min(len(hashes), sketchSize)])
}

func (s sketch) disjoint(o sketch) bool {
	if len(s) < minNodes || len(o) < minNodes {
		return false
	}
	return !slices.ContainsFunc(s, func(h uint64) bool { _, both := slices.BinarySearch(o, h); return both })
}
