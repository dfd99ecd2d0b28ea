package faults

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cilium/statedb"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/identities"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/model"
)

// localID is the ID of the cluster that the mesh runs in.
const localID = 250

// patience is the limit of each wait. Machines can be slow.
const patience = 5 * time.Minute

// heartbeatLimit is the age above which a heartbeat is stale.
const heartbeatLimit = 2 * time.Second

// world is a mesh and its remote clusters.
type world struct {
	t        testing.TB
	dir      string
	db       *statedb.DB
	view     *clustermesh.Ingest
	mesh     *clustermesh.Remotes
	clusters []*cluster

	// before are the marks of the last time when view and model agreed.
	before map[string]model.Mark

	mu  sync.Mutex
	lie error // guarded by mu: the first status that claimed too much
}

// newWorld starts everything. It ends with the test.
func newWorld(t testing.TB) *world {
	t.Helper()
	w := emptyWorld(t, nil)
	for i := range clusters {
		w.clusters = append(w.clusters, newCluster(w, i))
	}
	jobs := []func(context.Context) error{w.watchClaims}
	for _, c := range w.clusters {
		jobs = append(jobs, c.heartbeats)
	}
	w.start(jobs...)
	return w
}

// emptyWorld is a mesh without clusters, which does not run yet. tune, if set, changes its parameters.
func emptyWorld(t testing.TB, tune func(*clustermesh.Params)) *world {
	t.Helper()
	local := wire.ClusterInfo{Name: "own", ID: localID, MaxConnectedClusters: 255}
	w := &world{t: t, dir: t.TempDir(), db: statedb.New(), before: map[string]model.Mark{}}
	tables, err := clustermesh.NewTables(w.db, ipcache.New(ipcache.Rules{}))
	if err != nil {
		t.Fatal(err)
	}
	if w.view, err = clustermesh.NewIngest(local, tables); err != nil {
		t.Fatal(err)
	}
	opts := etcd.DefaultOptions()
	opts.QPS, opts.PageLimit = 0, 10
	opts.Timings.ProbeInterval, opts.Timings.Probe = 150*time.Millisecond, time.Second
	opts.Timings.Connect, opts.Timings.BackoffMax = 5*time.Second, 200*time.Millisecond
	opts.Timings.HeartbeatLimit = heartbeatLimit
	timings := remotecluster.DefaultTimings()
	timings.RetryMin, timings.RetryMax, timings.ConflictRetry = 20*time.Millisecond, 200*time.Millisecond, 50*time.Millisecond
	p := clustermesh.Params{
		Directory: w.dir, Local: local, SyncTimeout: time.Hour, Consumer: w.view.Consumer(nil),
		Engine: &opts, Timings: timings, Log: slog.New(slog.DiscardHandler),
	}
	if tune != nil {
		tune(&p)
	}
	w.mesh = clustermesh.New(p)
	return w
}

// start runs the mesh and the jobs until the end of the test.
func (w *world) start(jobs ...func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return w.mesh.Run(ctx) })
	for _, job := range jobs {
		g.Go(func() error { return job(ctx) })
	}
	w.t.Cleanup(func() {
		cancel()
		if err := g.Wait(); !errors.Is(err, context.Canceled) {
			w.t.Errorf("the world ended with %v", err)
		}
	})
}

// look returns the view in the model's form, without canaries.
func (w *world) look() model.Sight {
	return model.Look(w.view.Tables, model.Hidden{
		Name: canaryName, Identity: func(id *identities.Identity) bool { return id.ID == canaryID(id.ClusterID) },
		Addresses: netip.MustParsePrefix("10.254.0.0/16"),
	})
}

func expect(name string, id uint32) wire.Expect { return model.Expect(name, id, localID) }

// watchClaims looks for a false status: when a resource is reported as equal to the remote as of a time, every canary
// that was acknowledged before that time must be in the view.
func (w *world) watchClaims(ctx context.Context) error {
	for waiting.Sleep(ctx, 10*time.Millisecond) == nil {
		statuses := w.mesh.Clusters()
		for _, c := range w.clusters {
			st := find(statuses, c.name)
			for r, src := range st.Families {
				if src.Freshness.AsOf.IsZero() {
					continue
				}
				shown := w.canary(c, r, st.ID)
				// This is read last, because it is zero if the cluster was emptied meanwhile.
				if written := c.acknowledged(src.Freshness.AsOf); shown < written {
					w.lied(fmt.Errorf("%s of %s are said to be known as of %s (%s), but show canary %d, and %d was acknowledged before that",
						r, c.name, src.Freshness.AsOf.Format(time.StampMicro), src.Freshness.State, shown, written))
				}
			}
		}
	}
	return ctx.Err()
}

func (w *world) lied(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lie == nil {
		w.lie = err
	}
}

func find(all []remotecluster.Status, name string) remotecluster.Status {
	for _, st := range all {
		if st.Name == name {
			return st
		}
	}
	return remotecluster.Status{}
}

func (w *world) status(c *cluster) remotecluster.Status { return find(w.mesh.Clusters(), c.name) }

// until waits for a condition; its error names the condition.
func (w *world) until(what string, ok func() bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for !ok() {
		if waiting.Sleep(ctx, 5*time.Millisecond) != nil {
			return fmt.Errorf("waited in vain for %s\n%s", what, w.states())
		}
	}
	return nil
}

func (w *world) states() string {
	var b strings.Builder
	for _, st := range w.mesh.Clusters() {
		fmt.Fprintf(&b, "  %s (ID %d): %s %q, last error %q\n", st.Name, st.ID, st.State, st.Message, st.LastError)
	}
	return b.String()
}

// seenWithin is the time in which a view that equals the model must have seen everything.
const seenWithin = 2 * time.Second

// agree waits until the view equals the model, and then checks that objects without
// a write are the same as before. A view may equal the model before it has seen
// all writes, when the last writes to a key undo each other; such keys
// count as written until the view has also seen a later canary.
func (w *world) agree() error {
	sources := make([]source, len(w.clusters))
	last := make([]int, len(w.clusters))
	for i, c := range w.clusters {
		var err error
		if sources[i], err = c.read(); err != nil {
			return err
		}
		last[i] = c.barrier()
	}
	var want model.Picture
	var got model.Sight
	caughtUp := make([]bool, len(w.clusters))
	deadline := time.Now().Add(seenWithin)
	err := w.until("the view to equal the model", func() bool {
		behind := false
		for i, c := range w.clusters {
			caughtUp[i] = w.caughtUp(c, last[i])
			behind = behind || last[i] > 0 && !caughtUp[i]
		}
		got = w.look()
		want = model.Of(inForce(sources, got), localID)
		return maps.Equal(want, got.Picture) && (!behind || time.Now().After(deadline))
	})
	if err != nil {
		return fmt.Errorf("%w(-model +view):\n%s", err, cmp.Diff(want, got.Picture))
	}
	if err := w.unmoved(got); err != nil {
		return err
	}
	for i, c := range w.clusters {
		c.agreed(got, caughtUp[i])
	}
	w.before = got.Marks
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lie
}

// caughtUp reports whether the view shows the canary of a cluster in every resource.
func (w *world) caughtUp(c *cluster, canary int) bool {
	if canary == 0 {
		return false
	}
	for _, r := range numberedKinds() {
		if w.canary(c, r, c.id) < canary {
			return false
		}
	}
	return true
}

func inForce(sources []source, seen model.Sight) []model.Contents {
	var all []model.Contents
	for _, s := range sources {
		if s.there {
			all = append(all, s.inForce(seen))
		}
	}
	return all
}

// unmoved checks that an entry that still exists is the same object as
// before, unless it was written or its cluster was withdrawn in between.
func (w *world) unmoved(now model.Sight) error {
	var moved []string
	for what, m := range now.Marks {
		before, was := w.before[what]
		if was && before != m && !w.cluster(m.Cluster).mayMove(m.Key) {
			moved = append(moved, what)
		}
	}
	if len(moved) > 0 {
		return fmt.Errorf("caused events, although nobody wrote to it: %s", strings.Join(moved, ", "))
	}
	return nil
}

func (w *world) cluster(name string) *cluster {
	for _, c := range w.clusters {
		if c.name == name {
			return c
		}
	}
	panic("the view has entries of a cluster " + name)
}
