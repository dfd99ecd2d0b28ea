package xdsserver

import (
	"maps"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
)

// hold tells whether an assignment is held back: nobody learns that a service has no backends while
// a cluster that may have them could not be read since the start. A client that knows some from
// another agent goes on with them; one that knows none waits as long as it does.
func (c *catalog) hold(a *endpointv3.ClusterLoadAssignment) bool {
	return usable(a) == 0 && len(c.view.Unread()) > 0
}

// retry looks at what is held back again: the clusters may have been read.
func (c *catalog) retry() error {
	c.mu.Lock()
	held := maps.Clone(c.held)
	c.mu.Unlock()
	if len(held) == 0 {
		return nil
	}
	return c.update(held)
}
