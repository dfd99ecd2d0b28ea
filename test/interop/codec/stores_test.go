package codec

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/test/interop"
	"github.com/mesh-agent/mesh-agent/test/interop/model"
	"github.com/mesh-agent/mesh-agent/test/interop/ours"
	"github.com/mesh-agent/mesh-agent/test/interop/random"
)

const (
	ofStores = 1_000           // objects of each kind
	patience = 4 * time.Minute // for all of them to arrive
)

// TestStoresOfOlderReleasesFollowWhatWePublish: an older release's own stores read a cluster that
// we publish, from its etcd and from the one that our mirror copies it to, through creation, update
// and deletion. Package live has the tests with the newest release's agent.
func TestStoresOfOlderReleasesFollowWhatWePublish(t *testing.T) {
	t.Parallel()
	seed := interop.Seed(t)
	for _, release := range interop.Releases(t) {
		if release == interop.Newest {
			continue
		}
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			c := random.Cluster{Name: "c2", ID: 2, MaxConnectedClusters: 255}
			m := random.New(seed, c)
			first := m.Some(0, ofStores)
			w := startWorld(t, release, c)

			w.publisher.Put(t, first)
			w.await(t, first)
			second := m.Some(0, ofStores/2) // new versions of the first half
			w.publisher.Put(t, second)
			w.publisher.Delete(t, m.Some(ofStores/2, ofStores/2))
			w.await(t, second)

			trial := interop.Trial{
				Name: "Cilium reads what mesh-agent publishes, directly and through `mesh-agent mirror`", Release: release,
			}
			for _, kind := range w.kinds {
				trial.Figures = append(trial.Figures, interop.Figure{Name: string(kind), Value: fmt.Sprintf(
					"%d created, %d updated, %d deleted", interop.Count(first, kind), interop.Count(second, kind),
					interop.Count(first, kind)-interop.Count(second, kind))})
			}
			interop.KeepTrial(t, trial)
		})
	}
}

// world is a cluster that we publish, our mirror that copies it to another etcd, and a
// reader of the release at each etcd.
type world struct {
	publisher *ours.Publisher
	readers   []*interop.Peer
	kinds     []model.Kind // the kinds that the release reads in this way
	mirror    *interop.Agent
}

func startWorld(t *testing.T, release string, c random.Cluster) world {
	t.Helper()
	own, other := etcdtest.Start(t), etcdtest.Start(t)
	file := own.ConfigFile(t)
	w := world{publisher: ours.Publish(t, file, interop.Config(c.Name, c.ID))}
	w.publisher.Synced(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	interop.Must(t, w.publisher.Wait(ctx))
	dir := filepath.Join(t.TempDir(), "mesh")
	interop.ClientFile(t, dir, c.Name, own.Endpoint())
	w.mirror = interop.StartAgent(t, "mirror", "--cluster-name", "c1", "--cluster-id", "1", "--clustermesh-config", dir,
		"--kvstore-opt", "etcd.config="+other.ConfigFile(t), "--kvstore-opt", "etcd.qps=100000")
	for _, args := range []model.WatchArgs{{File: file}, {File: other.ConfigFile(t), Cached: true}} {
		args.Expect = model.Expect{Cluster: c.Name, ClusterID: c.ID}
		p := interop.Start(t, release, "watch")
		interop.Ask[struct{}](t, p, "Watch.Open", args)
		w.readers = append(w.readers, p)
	}
	about := interop.Ask[model.About](t, interop.Start(t, release, "codec"), "Codec.About", struct{}{})
	w.kinds = slices.DeleteFunc(about.Kinds, func(k model.Kind) bool { return k == model.ClusterConfigs })
	return w
}

// await waits until both readers have the objects, and no others.
func (w world) await(t *testing.T, o model.Objects) {
	t.Helper()
	for i, p := range w.readers {
		want := w.arriving(o, p.Release)
		name := fmt.Sprintf("reader %d of %s", i, p.Release)
		interop.Until(t, name, patience, func(context.Context) error {
			if n := interop.Ask[model.WatchCountReply](t, p, "Watch.Count", struct{}{}).Objects; n != want.Len() {
				return fmt.Errorf("it has %d objects of %d", n, want.Len())
			}
			return nil
		})
		interop.Until(t, name, patience, func(context.Context) error {
			got := interop.Ask[model.WatchReply](t, p, "Watch.View", struct{}{})
			if len(got.Synced) != len(w.kinds) {
				return fmt.Errorf("synced are only %v of %v", got.Synced, w.kinds)
			}
			if d := interop.Compare(want, got.Objects); len(d) > 0 {
				return fmt.Errorf("%d differ, such as %v", len(d), d[0])
			}
			return nil
		})
		for _, l := range p.Complaints() {
			t.Errorf("%s complains: %s", name, l.Text)
		}
	}
	for _, l := range w.mirror.Complaints(t) {
		t.Errorf("the mirror complains: %s", l.Text)
	}
}

// arriving returns what the release keeps of the objects.
func (w world) arriving(o model.Objects, release string) model.Objects {
	var all model.Objects
	for _, part := range o.ByKind() {
		for _, kind := range w.kinds {
			if interop.Count(part, kind) > 0 {
				arriving(&part, release, kind, interop.WeWrite)
				all.Add(part)
			}
		}
	}
	return all
}
