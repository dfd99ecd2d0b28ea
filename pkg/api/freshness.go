package api

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
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

// clustersNow is what the mesh says of its clusters, by name.
func (s *Server) clustersNow() map[string]remotecluster.Status {
	clusters := make(map[string]remotecluster.Status)
	for _, c := range s.everyCluster() {
		clusters[c.Name] = c
	}
	return clusters
}

// doubt says why what a cluster brought of a resource may not be what it has
// now; empty when it is known to be.
func (v *view) doubt(cluster string, r wire.Resource) string {
	c, known := v.clusters[cluster]
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

// freshness says of each cluster how fresh the worst of some resources is; nil for
// none of them.
func (v *view) freshness(of []wire.Resource, now time.Time) map[string]Freshness {
	if len(of) == 0 {
		return nil
	}
	all := make(map[string]Freshness, len(v.clusters))
	for name, c := range v.clusters {
		f, _ := c.FreshnessOf(of...)
		all[name] = toFreshness(f, now)
	}
	return all
}

// resourceOf is the key family that a claim came from.
func resourceOf(e *ipcache.Entry) wire.Resource {
	if e.NodeName() != "" {
		return wire.Nodes
	}
	return wire.IPs
}

// unconfirmed lists the clusters that may have something of one of these
// resources, or have given it up, without our knowing.
func (v *view) unconfirmed(of ...wire.Resource) []string {
	names := []string{}
	for _, name := range slices.Sorted(maps.Keys(v.clusters)) {
		if slices.ContainsFunc(of, func(r wire.Resource) bool { return v.doubt(name, r) != "" }) {
			names = append(names, name)
		}
	}
	return names
}

// doubtful adds to the news that something does not exist which clusters may
// have it all the same.
func (v *view) doubtful(err error, of []wire.Resource) error {
	p, is := errors.AsType[*Problem](err)
	if !is || p.Status != http.StatusNotFound {
		return err
	}
	if names := v.unconfirmed(of...); len(names) > 0 {
		p.Detail += fmt.Sprintf("; what these clusters have is not known as of now: %s", strings.Join(names, ", "))
	}
	return p
}
