package kubernetes

import (
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/own/kubernetes"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestAQuietClusterIsFresh: nothing changes, and the etcd of the API server sends no progress, so there are no
// bookmarks. The own cluster is known as of later and later times.
func TestAQuietClusterIsFresh(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.follow(t, kubernetes.Options{Quiet: time.Second})
	w.awaitListed(t)
	for range 3 {
		last := time.Now()
		waittest.Until(t, "a later time", func() bool { return w.tables.State().AsOf.After(last) })
	}
}
