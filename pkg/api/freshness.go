package api

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// everyCluster describes the clusters that are read: the remote ones, and the
// own one when it has a kvstore.
func (s *Server) everyCluster() []remotecluster.Status {
	all := s.Mesh.Clusters()
	if own, has := s.Mesh.Local(); has {
		all = append(slices.Clip(all), own)
	}
	return all
}

// known is what the mesh says of its clusters now, by name; it is asked once for
// a view.
func (v *view) known(s *Server) map[string]remotecluster.Status {
	if v.clusters == nil {
		v.clusters = make(map[string]remotecluster.Status)
		for _, c := range s.everyCluster() {
			v.clusters[c.Name] = c
		}
	}
	return v.clusters
}

func (v *view) cluster(s *Server, name string) (remotecluster.Status, bool) {
	c, known := v.known(s)[name]
	return c, known
}

// doubt says why what a cluster brought of a resource may not be what it has
// now; empty when it is known to be.
func (v *view) doubt(s *Server, cluster string, r wire.Resource) string {
	c, known := v.cluster(s, cluster)
	if !known {
		return ""
	}
	f := c.Sources[r].Freshness
	switch {
	case f.State == remotecluster.FreshnessSynced:
		return ""
	case f.AsOf.IsZero():
		return fmt.Sprintf("the copy of %s's %s is not complete yet", cluster, r)
	}
	return fmt.Sprintf("not confirmed since %s", f.AsOf.UTC().Format(time.RFC3339))
}

// resourceOf is the key family that a claim came from.
func resourceOf(e *ipcache.Entry) wire.Resource {
	if e.NodeName() != "" {
		return wire.Nodes
	}
	return wire.IPs
}

// unconfirmed lists the clusters that may claim addresses, or have given them
// up, without our knowing.
func (v *view) unconfirmed(s *Server) []string {
	names := []string{}
	for _, name := range slices.Sorted(maps.Keys(v.known(s))) {
		if v.doubt(s, name, wire.IPs) != "" || v.doubt(s, name, wire.Nodes) != "" {
			names = append(names, name)
		}
	}
	return names
}
