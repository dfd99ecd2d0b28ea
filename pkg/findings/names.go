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

// nameWindow is how long an answer that came back counts at the least, and
// maxNameWindow at the most: twice as long as it was away.
const (
	nameWindow    = 10 * time.Minute
	maxNameWindow = 24 * time.Hour
)

// maxSightings bounds what is kept of one name.
const maxSightings = 32

// clusterNames finds names to which several clusters answer: the endpoints of one client file lead
// to different ones, or two write into one etcd. The evidence is that the answers alternate: one
// answer came, then one of another cluster, then the first one again. Answers are of different
// clusters when their cluster IDs differ, or when they list some nodes each and not one in common.
// In one etcd, where the ID may have been set wrongly for a moment, it takes one alternation more,
// and so it does when the cluster comes back with another etcd.
//
// No conflict are replicas of one clustermesh-apiserver (other etcds, the same ID and
// nodes), an etcd that was rebuilt or restored, and an ID that was changed: none of these
// goes back to the answer of before. A move to another cluster that is taken back looks like a
// conflict for as long as it counts. Not seen are a second cluster as long as the connection
// stays with the first, an answer that is over before the next look, and clones with equal IDs
// of fewer than [minNodes] nodes. Heartbeats
// prove nothing: a mirror and an apiserver may both write that of one etcd.
//
// It ends when no answer has come back for as long as it counts, or when the client file
// has other endpoints.
type clusterNames struct {
	seed   maphash.Seed
	trails map[string]*trail
}

// trail is who answered to a name.
type trail struct {
	endpoints string
	sightings []sighting // the oldest first; neighbours differ in etcd or ID
}

// sighting is an answer, and when it was seen first and last.
type sighting struct {
	etcd        string
	id          uint32
	nodes       sketch    // as they were when asked; none until everything was listed
	asked       time.Time // zero until then
	first, last time.Time
}

func newClusterNames() *clusterNames {
	return &clusterNames{seed: maphash.MakeSeed(), trails: make(map[string]*trail)}
}

// look takes in what the clusters say, and returns the conflicts that there are.
// The nodes of a cluster are asked for once they are listed, and now and then.
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
		// Its configuration was read, also when that is refused for an ID that another cluster has.
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

// see notes an answer, and returns what is known of it.
func (t *trail) see(now time.Time, etcd string, id uint32) *sighting {
	if n := len(t.sightings); n == 0 || t.sightings[n-1].etcd != etcd || t.sightings[n-1].id != id {
		t.sightings = append(t.sightings, sighting{etcd: etcd, id: id, first: now})
		t.trim()
	}
	current := &t.sightings[len(t.sightings)-1]
	current.last = now
	return current
}

// trim keeps the bound: the first sighting goes whose answer came again before the
// newest one, so that one who answers rarely is not forgotten for those who answer
// often, and the oldest when there is none.
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
	if gone > 0 && gone < len(t.sightings) { // neighbours may be one answer now
		if a, b := &t.sightings[gone-1], t.sightings[gone]; a.etcd == b.etcd && a.id == b.id {
			a.last, a.nodes, a.asked = b.last, b.nodes, b.asked
			t.sightings = slices.Delete(t.sightings, gone, gone+1)
		}
	}
}

// alternates reports whether an answer has come back after one of another cluster, not too long ago.
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

// weight is how much it proves that an answer came back after those between.
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

// foreign reports whether the answers are those of different clusters.
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

// minNodes is how many nodes an answer must list to be distinguished by them from another one.
const minNodes = 3

// sketch stands for the nodes of an answer: the smallest of their hashes. Where
// many nodes are the same, some of these are.
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
