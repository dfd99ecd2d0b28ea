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

// maxAnswers is how many answers of one name are kept.
const maxAnswers = 32

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
	seed maphash.Seed
	of   map[string]*answers
}

// answers are the answers for one name.
type answers struct {
	endpoints string
	list      []answer // the oldest first; neighbours differ in etcd or ID
}

// answer is an answer, with the first and the last time that it was seen.
type answer struct {
	etcd        string
	id          uint32
	nodes       sketch    // as of the time in asked; none until everything was listed
	asked       time.Time // zero until then
	first, last time.Time
}

func newClusterNames() *clusterNames {
	return &clusterNames{seed: maphash.MakeSeed(), of: make(map[string]*answers)}
}

// look takes in the status of the clusters, and returns the present conflicts. The nodes of a cluster are read once
// they are listed, and then again every nameWindow.
func (d *clusterNames) look(now time.Time, clusters []remotecluster.Status, nodesOf func(string) []*nodes.Node) []*Conflict {
	var conflicts []*Conflict
	present := make(map[string]bool, len(clusters))
	for i := range clusters {
		c := &clusters[i]
		present[c.Name] = true
		t := d.of[c.Name]
		if t == nil {
			t = new(answers)
			d.of[c.Name] = t
		}
		if endpoints := strings.Join(c.Endpoints, ","); endpoints != t.endpoints {
			t.endpoints, t.list = endpoints, nil
		}
		// Its configuration was read. This is also true when the cluster is refused because another cluster has its ID.
		if c.Connected && c.AnsweredID != 0 {
			current := t.see(now, c.EtcdClusterID, c.AnsweredID)
			if c.Ready && (current.asked.IsZero() || now.Sub(current.asked) >= nameWindow) {
				current.nodes, current.asked = d.sketch(nodesOf(c.Name)), now
			}
		}
		if t.alternates(now) {
			conflicts = append(conflicts, nameConflict(c.Name, t.list))
		}
	}
	for name := range d.of {
		if !present[name] {
			delete(d.of, name)
		}
	}
	return conflicts
}

// see stores an answer, or extends the last one, and returns it.
func (t *answers) see(now time.Time, etcd string, id uint32) *answer {
	if n := len(t.list); n == 0 || t.list[n-1].etcd != etcd || t.list[n-1].id != id {
		t.list = append(t.list, answer{etcd: etcd, id: id, first: now})
		t.trim()
	}
	current := &t.list[len(t.list)-1]
	current.last = now
	return current
}

// trim keeps the bound: it removes the first answer that was seen again before the newest one, so that
// rare answers are not lost because of frequent ones. When there is none, it removes the oldest answer.
func (t *answers) trim() {
	if len(t.list) <= maxAnswers {
		return
	}
	gone := max(0, slices.IndexFunc(t.list[:maxAnswers/2], func(s answer) bool {
		again := 0
		for i := range t.list[:len(t.list)-1] {
			if t.list[i].etcd == s.etcd && t.list[i].id == s.id {
				again++
			}
		}
		return again > 1
	}))
	t.list = slices.Delete(t.list, gone, gone+1)
	if gone > 0 && gone < len(t.list) { // the neighbours may have the same answer now
		if a, b := &t.list[gone-1], t.list[gone]; a.etcd == b.etcd && a.id == b.id {
			a.last, a.nodes, a.asked = b.last, b.nodes, b.asked
			t.list = slices.Delete(t.list, gone, gone+1)
		}
	}
}

// alternates reports whether an answer returned after one of another cluster, and this still counts.
func (t *answers) alternates(now time.Time) bool {
	weight := 0
	for k := range t.list {
		for i := k - 2; i >= 0; i-- {
			again, back := &t.list[i], &t.list[k]
			if again.id != back.id || again.foreign(back) {
				continue
			}
			away := back.first.Sub(again.last)
			if now.Sub(back.first) < min(max(nameWindow, 2*away), maxNameWindow) {
				weight += back.weight(again, t.list[i+1:k])
			}
			break
		}
	}
	return weight >= 2
}

// weight returns how strong the evidence is that an answer returned after those between: 2 is enough for a conflict.
func (s *answer) weight(before *answer, between []answer) int {
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
func (s *answer) foreign(o *answer) bool { return s.id != o.id || s.nodes.disjoint(o.nodes) }

func nameConflict(name string, all []answer) *Conflict {
	var texts []string
	for _, s := range all {
		if text := fmt.Sprintf("cluster ID %d in etcd %s", s.id, s.etcd); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	slices.Sort(texts)
	return &Conflict{
		Kind: KindClusterName, Code: codes.ClusterNameConflict, Subject: name, Clusters: []string{name},
		Rule: "the last answer counts",
		Message: fmt.Sprintf("different clusters answer to the name %s in turn: %s. Its data changes with each connection: check where its endpoints lead, and give each cluster its own name",
			name, list(texts)),
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
