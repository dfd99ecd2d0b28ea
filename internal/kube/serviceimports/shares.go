package serviceimports

import "strings"

// fullShares is how many remote clusters there may be before their shares become smaller.
const fullShares = 4

// shares bound how many services are imported, so that no cluster takes the room of the others, and in a
// cluster no namespace takes that of the others. Of all that may be imported, a cluster has as much as each of all
// clusters can have, but at most a quarter; of that a namespace has half.
//
// An import counts for one cluster: the one whose export it follows (mcs.AnnotationWinner). So a cluster that exports
// the same service as another cluster takes no room from that one. An existing import stays while its cluster exports
// the service; after that it counts for another exporting cluster that has room. The own cluster's exports count for no
// cluster.
type shares struct {
	own      string
	all      int               // how many may be imported
	clusters int               // remote ones
	counted  map[string]string // by import, as "namespace/name": the cluster that it counts for
	held     map[owner]int     // without those that hold nothing
	freed    bool              // there may be room that was not there
}

// owner is a cluster, a namespace of one, or, as the zero value, all clusters.
type owner struct{ cluster, namespace string }

func newShares(own string, all int) *shares {
	return &shares{own: own, all: all, counted: make(map[string]string), held: make(map[owner]int)}
}

// ofCluster is how many imports a cluster may have.
func (s *shares) ofCluster() int { return max(1, s.all/max(s.clusters, fullShares)) }

// ofNamespace is how many a namespace of a cluster may have.
func (s *shares) ofNamespace() int { return max(1, s.ofCluster()/2) }

func (s *shares) setClusters(n int) {
	s.freed = s.freed || n != s.clusters
	s.clusters = n
}

func ownersOf(name, cluster string) [3]owner {
	namespace, _, _ := strings.Cut(name, "/")
	return [...]owner{{}, {cluster, ""}, {cluster, namespace}}
}

// hasRoom reports whether an import may count for a cluster.
func (s *shares) hasRoom(name, cluster string) bool {
	if s.counted[name] == cluster {
		return true
	}
	of := ownersOf(name, cluster)
	return s.held[of[0]] < s.all && s.held[of[1]] < s.ofCluster() && s.held[of[2]] < s.ofNamespace()
}

// choose returns the first of the remote clusters with room for an import; empty when none has.
func (s *shares) choose(name string, clusters []string) string {
	for _, cluster := range clusters {
		if cluster != s.own && s.hasRoom(name, cluster) {
			return cluster
		}
	}
	return ""
}

// count notes for which cluster an import counts; empty: there is none of the name.
func (s *shares) count(name, cluster string) {
	before := s.counted[name]
	if before == cluster {
		return
	}
	if s.add(name, before, -1); before != "" && before != s.own {
		s.freed = true
	}
	s.add(name, cluster, 1)
	if s.counted[name] = cluster; cluster == "" {
		delete(s.counted, name)
	}
}

func (s *shares) add(name, cluster string, n int) {
	if cluster == "" || cluster == s.own {
		return
	}
	for _, of := range ownersOf(name, cluster) {
		if s.held[of] += n; s.held[of] == 0 {
			delete(s.held, of)
		}
	}
}

// wasFreed reports whether there may be room that was not there before.
func (s *shares) wasFreed() bool {
	freed := s.freed
	s.freed = false
	return freed
}
