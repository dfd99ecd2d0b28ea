package simulate

import (
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/agents"
	"github.com/mesh-agent/mesh-agent/simtest/model"
)

// removal is a cluster that is no longer read by the programs of another one.
type removal struct {
	from, of *cluster
}

// removals takes a cluster away from each other one, as docs/mirror.md says: the client file of the mirror first, and a
// minute later that of the agents, which read the copy.
func (w *world) removals(r *rand.Rand) (all []removal) {
	for i, c := range w.clusters {
		gone := removal{c, w.clusters[(i+1+r.IntN(len(w.clusters)-1))%len(w.clusters)]}
		c.flaps.fault()
		c.remote.leaves()
		w.found(os.Remove(w.Originals(c.Cluster, gone.of.Cluster)))
		all = append(all, gone)
	}
	time.Sleep(time.Minute)
	for _, gone := range all {
		w.found(os.Remove(w.Copies(gone.from.Cluster, gone.of.Cluster)))
	}
	return all
}

// back gives the cluster back.
func (r removal) back(w *world) {
	r.from.flaps.fault()
	r.from.remote.leaves()
	w.found(agents.WriteClientFile(w.Originals(r.from.Cluster, r.of.Cluster), r.from.Cluster, r.of.Cluster))
	w.found(agents.WriteClientFile(w.Copies(r.from.Cluster, r.of.Cluster), r.from.Cluster, r.from.Cluster))
}

// left returns a remainder of the cluster in the kvstore or in a view; empty: there is none.
func (r removal) left() string {
	name, of := r.from.Own.Name, r.of.Own.Name
	if r.from.Store.Has(wire.ClusterConfigKey(of)) {
		return fmt.Sprintf("the configuration of %s in the kvstore of %s, although its mirror no longer reads the cluster", of, name)
	}
	for _, family := range model.Families() {
		copies := r.from.history.of(family, of, true)
		if n := len(r.from.history.now(copies)); n > 0 {
			return fmt.Sprintf("%d keys below %s in the kvstore of %s, although its mirror no longer reads the cluster", n, copies.prefix, name)
		}
		for _, s := range r.from.screens {
			if n := s.count(familyOf{of, family}); n > 0 {
				return fmt.Sprintf("%d %s of %s are shown in %s (copies: %t), although the cluster is removed", n, family, of, name, s.copies)
			}
		}
	}
	return ""
}

// leftOf returns a remainder of the clusters; empty: there is none.
func leftOf(all []removal) string {
	for _, r := range all {
		if left := r.left(); left != "" {
			return left
		}
	}
	return ""
}

// removalTakes is the time in which a removed cluster has to vanish: after its configuration, the mirror leaves its keys
// for some minutes.
const removalTakes = 10 * time.Minute
