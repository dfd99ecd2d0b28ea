package kubernetes

import (
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/simtest/members/agentapi"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestAQuietClusterIsFresh: nothing changes, and the etcd of the API server sends no progress, so there are no
// bookmarks. The own cluster is shown as fresh for longer than the limit for a cluster without events.
func TestAQuietClusterIsFresh(t *testing.T) {
	t.Parallel()
	s := newSliced(t)
	s.operator(t, "op")
	own := func() *api.Cluster {
		st, err := agentapi.Get[api.Status](t.Context(), s.socket("op"), "status")
		if err != nil {
			return nil
		}
		return st.OwnCluster
	}
	waittest.Until(t, "the own cluster", func() bool { c := own(); return c != nil && c.Well() })
	waittest.Until(t, "the remote cluster, of which services alone are read", func() bool {
		all, err := agentapi.List[api.Cluster](t.Context(), s.socket("op"), "clusters")
		return err == nil && len(all) == 1 && all[0].Well()
	})
	began := time.Now()
	waittest.Until(t, "200 seconds", func() bool {
		c := own()
		if c == nil || !c.Well() {
			t.Fatalf("after %s the own cluster is not well: %+v", time.Since(began), c)
		}
		return time.Since(began) > 200*time.Second
	})
}
