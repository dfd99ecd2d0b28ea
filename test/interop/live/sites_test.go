package live

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/test/interop"
	"github.com/mesh-agent/mesh-agent/test/interop/model"
	"github.com/mesh-agent/mesh-agent/test/interop/ours"
)

// shortTTL is the TTL of leases in tests that wait for their end: the shortest possible one. goneWithin is when all
// keys with these leases must be gone.
const (
	shortTTL   = 25 * time.Second
	goneWithin = 40 * time.Second
)

// publisher publishes a cluster: Cilium's peer, or this project's stores.
type publisher interface {
	Put(testing.TB, model.Objects)
	Delete(testing.TB, model.Objects)
	Synced(testing.TB, ...model.Kind)
}

// publishers start a publisher of each side. Cilium's publisher must not have logged complaints at the end.
func publishers() map[string]func(*testing.T, string, model.ClusterConfig) publisher {
	return map[string]func(*testing.T, string, model.ClusterConfig) publisher{
		"published by Cilium": func(t *testing.T, file string, c model.ClusterConfig) publisher {
			t.Helper()
			p := interop.Publish(t, interop.Newest, file, c)
			t.Cleanup(func() { interop.Quiet(t, "Cilium's publisher", p.Complaints()) })
			return p
		},
		"published by us": func(t *testing.T, file string, c model.ClusterConfig) publisher {
			t.Helper()
			return ours.Publish(t, file, c)
		},
	}
}

// reader reads clusters: Cilium's agent, ours, or our stores. In the end it must see exactly these objects.
type reader interface {
	see(t *testing.T, what string, limit time.Duration, want model.Objects)
}

// ciliumReader reads clusters as Cilium's agent does.
type ciliumReader struct{ interop.Reader }

// readWithCilium has an agent of the cluster c1 read the clusters of these files.
func readWithCilium(t *testing.T, files map[string]string) ciliumReader {
	t.Helper()
	return ciliumReader{interop.Read(t, interop.Newest, model.ReadArgs{
		Cluster: "c1", ClusterID: 1, MaxConnectedClusters: 255, Dir: clusterDir(t, files),
	})}
}

func (r ciliumReader) see(t *testing.T, what string, limit time.Duration, want model.Objects) {
	t.Helper()
	begin := time.Now()
	interop.Until(t, "Cilium to see "+what, limit, sparing(func(context.Context) error {
		entries := map[model.Kind]int{}
		for _, c := range r.Clusters(t) {
			if !c.Ready {
				return fmt.Errorf("%s is not ready: %+v", c.Name, c)
			}
			for kind, n := range c.Entries {
				entries[kind] += int(n)
			}
		}
		if err := enough(want, entries); err != nil {
			return err
		}
		return interop.Same(interop.KeptByCilium(want), r.View(t))
	}))
	t.Logf("Cilium sees %s within %s", what, time.Since(begin).Round(time.Millisecond))
}

// enough compares the numbers of entries of each kind with the expected ones, which costs less than to compare the
// entries.
func enough(want model.Objects, entries map[model.Kind]int) error {
	for kind, n := range entries {
		if must := interop.Count(want, kind); n != must {
			return fmt.Errorf("there are %d %s, there must be %d", n, kind, must)
		}
	}
	return nil
}

// sparing makes a condition that fails wait for as long as it took.
func sparing(cond func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		begin := time.Now()
		err := cond(ctx)
		if err != nil {
			_ = waiting.Sleep(ctx, time.Since(begin)) // the caller checks ctx
		}
		return err
	}
}
