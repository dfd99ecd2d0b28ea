package view

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Doubt says why what a cluster brought of a resource may not be what it has
// now; empty when it is known to be.
func (s *Snapshot) Doubt(cluster string, r wire.Resource) string {
	c, known := s.Known[cluster]
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

// Freshness says of each cluster how fresh the worst of some key families is that it
// exports: in the least good state, and as of the earliest time. The snapshot is a dated
// one. Nil for no families.
func (s *Snapshot) Freshness(of ...wire.Resource) map[string]remotecluster.Freshness {
	if len(of) == 0 {
		return nil
	}
	all := make(map[string]remotecluster.Freshness, len(s.Known))
	for name, c := range s.Known {
		all[name], _ = c.FreshnessOf(of...)
	}
	return all
}

// FamilyOf is the key family that a claim came from.
func FamilyOf(e *ipcache.Entry) wire.Resource {
	if e.NodeName() != "" {
		return wire.Nodes
	}
	return wire.IPs
}

// Unconfirmed lists the clusters that may have something of one of these
// resources, or have given it up, without our knowing.
func (s *Snapshot) Unconfirmed(of ...wire.Resource) []string {
	names := []string{}
	for _, name := range slices.Sorted(maps.Keys(s.Known)) {
		if slices.ContainsFunc(of, func(r wire.Resource) bool { return s.Doubt(name, r) != "" }) {
			names = append(names, name)
		}
	}
	return names
}
