package nodes

import "sync"

// counts is how many nodes there are of each cluster, for those who ask often: every
// session does.
type counts struct {
	mu sync.Mutex
	by map[string]int // guarded by mu; none is 0
}

// add notes how many more there are now, by cluster.
func (c *counts) add(more map[string]int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = make(map[string]int)
	}
	for cluster, n := range more {
		if c.by[cluster] += n; c.by[cluster] == 0 {
			delete(c.by, cluster)
		}
	}
}

// Count returns how many nodes of the cluster are in the table. It costs nothing to
// speak of, and may be called by any goroutine.
func (s *Nodes) Count(cluster string) int {
	s.counts.mu.Lock()
	defer s.counts.mu.Unlock()
	return s.counts.by[cluster]
}
