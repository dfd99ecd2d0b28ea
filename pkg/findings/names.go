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

// nameWindow is how long an answer counts as evidence that somebody else has the
// same name.
const nameWindow = 10 * time.Minute

// maxSightings bounds what is kept of one name.
const maxSightings = 32

// clusterNames finds names to which several clusters answer: the endpoints of one
// client file that lead to different ones, or two that write into one etcd. The
// evidence is that the answers alternate. Within [nameWindow] one answer came, then
// one of another cluster, then the first one again, so that both are alive. Answers
// are of different clusters when their configurations have different cluster IDs,
// or when they list some nodes each and not one in common. In one etcd, where the
// ID may have been set wrongly for a moment, it takes one alternation more.
//
// What is healthy and no conflict: replicas of one clustermesh-apiserver (other
// etcds, the same ID and nodes), an etcd that was rebuilt or restored, and an ID that
// was changed: none of these goes back to the answer of before.
//
// What is not seen: a second cluster as long as the connection stays with the first
// (nobody asks the other endpoints), an answer that is over before the next look,
// and clones with equal IDs of fewer than [minNodes] nodes. Nor are heartbeats counted: a mirror and an apiserver may both
// write that of one etcd, and a writer that restarts writes at once, so a heartbeat
// more often than once a minute proves nothing. Two names for one cluster have one ID,
// and are a conflict of that kind. Of an etcd nothing is read but what is below the
// name that was asked for: other names in it, also our own, are not seen, and an entry
// there that names another cluster is refused with that reason.
//
// It ends when no other answer was seen for as long, or when the client file has
// other endpoints.
type clusterNames struct {
	seed   maphash.Seed
	trails map[string]*trail
}

// trail is who answered to a name lately.
type trail struct {
	endpoints string
	sightings []sighting // the oldest first; neighbours differ in etcd or ID
}

// sighting is an answer, and when it was seen first and last.
type sighting struct {
	etcd        string
	id          uint32
	nodes       sketch
	first, last time.Time
}

func newClusterNames() *clusterNames {
	return &clusterNames{seed: maphash.MakeSeed(), trails: make(map[string]*trail)}
}

// look takes in what the clusters say, and returns the conflicts that there are.
// The nodes of a cluster are asked for when somebody else answers than before.
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
		if etcd, id, answers := answer(c); answers {
			t.see(now, etcd, id, func() sketch { return d.sketch(nodesOf(c.Name)) })
		}
		t.trim(now)
		if t.alternates() {
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

// answer is who answers to the name in the present session, once that is known:
// when everything is followed, or the configuration is refused for an ID that
// another cluster has.
func answer(c *remotecluster.Status) (etcd string, id uint32, answers bool) {
	switch {
	case c.Ready:
		return c.EtcdClusterID, c.ID, true
	case c.Connected && c.State == remotecluster.Failed && c.IDConflict != nil:
		return c.EtcdClusterID, c.IDConflict.ID, true
	}
	return "", 0, false
}

func (t *trail) see(now time.Time, etcd string, id uint32, nodes func() sketch) {
	if n := len(t.sightings); n > 0 && t.sightings[n-1].etcd == etcd && t.sightings[n-1].id == id {
		t.sightings[n-1].last = now
		return
	}
	t.sightings = append(t.sightings, sighting{etcd: etcd, id: id, nodes: nodes(), first: now, last: now})
}

// trim forgets what is too old to be evidence; the latest answer stays.
func (t *trail) trim(now time.Time) {
	stale := 0
	for stale < len(t.sightings)-1 && now.Sub(t.sightings[stale].last) > nameWindow {
		stale++
	}
	t.sightings = slices.Delete(t.sightings, 0, max(stale, len(t.sightings)-maxSightings))
}

// alternates tells whether an answer has come back after one of another cluster.
func (t *trail) alternates() bool {
	weight := 0
	for k := range t.sightings {
		for i := k - 2; i >= 0; i-- {
			again, now := &t.sightings[i], &t.sightings[k]
			if again.etcd != now.etcd || again.id != now.id {
				continue
			}
			switch between := t.sightings[i+1 : k]; {
			case slices.ContainsFunc(between, func(s sighting) bool { return s.etcd != now.etcd && s.foreign(now) }):
				weight += 2
			case slices.ContainsFunc(between, func(s sighting) bool { return s.foreign(now) }):
				weight++
			}
			break
		}
	}
	return weight >= 2
}

// foreign tells whether the answers are those of different clusters.
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
		Rule: "who answered last counts",
		Message: fmt.Sprintf("different clusters answer to the name %s in turn: %s. What is shown of it changes with each connection: look where its endpoints lead, and give each cluster a name of its own",
			name, list(answers)),
	}
}

// minNodes is how many nodes an answer must list to be told from another one by
// them.
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
