package remotecluster

import "github.com/mesh-agent/mesh-agent/pkg/codes"

// Inadmissible is why a cluster may not be read as its configuration says, whoever
// has its ID at this moment.
type Inadmissible struct {
	Code codes.Code
	Why  string
	// Withdraw: what the cluster has brought before goes, too.
	Withdraw bool
}

// Error says why.
func (e *Inadmissible) Error() string { return e.Why }

// Recheck has the sources list everything and decode it again in the next session:
// what they refuse has changed. No session may run.
func (c *Cluster) Recheck() {
	for _, s := range c.sources {
		if r, can := s.(interface{ Recheck() }); can {
			r.Recheck()
		}
	}
}
