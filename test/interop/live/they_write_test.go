package live

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/members/agentapi"
	"github.com/mesh-agent/mesh-agent/test/interop"
	"github.com/mesh-agent/mesh-agent/test/interop/model"
	"github.com/mesh-agent/mesh-agent/test/interop/ours"
)

// patience is how long the large tests wait for all objects to arrive.
const patience = 5 * time.Minute

// readers are our two readers of the cluster c2: an agent, through its API, and a reader of all entries.
type readers struct {
	agent   *interop.Agent
	entries *ours.Reader
}

func startReaders(t *testing.T, file string) readers {
	t.Helper()
	return readers{
		agent: interop.StartAgent(t, "run", "--cluster-name", "c1", "--cluster-id", "1",
			"--clustermesh-config", clusterDir(t, map[string]string{"c2": file}), "--kvstore-opt", "etcd.qps=100000"),
		entries: ours.Read(t, file, wire.Expect{Cluster: "c2", ClusterID: 2}, false),
	}
}

// see waits until both see exactly these objects.
func (r readers) see(t *testing.T, what string, limit time.Duration, want model.Objects) {
	t.Helper()
	begin := time.Now()
	entriesSee(t, r.entries, what, limit, want)
	interop.Until(t, "our agent to see "+what, limit, sparing(func(ctx context.Context) error { return agentShows(ctx, r.agent, want) }))
	t.Logf("%s: seen within %s", what, time.Since(begin).Round(time.Millisecond))
}

// entriesSee waits until a reader of entries has exactly these objects.
func entriesSee(t *testing.T, r *ours.Reader, what string, limit time.Duration, want model.Objects) {
	t.Helper()
	interop.Until(t, "our reader to see "+what, limit, sparing(func(context.Context) error {
		got, refused := r.View()
		if refused > 0 {
			return fmt.Errorf("%d entries are refused", refused)
		}
		return interop.Same(interop.KeptByUs(want), got)
	}))
}

// lateCanary is in the log of our agent when the canary of slices comes 30 s after the connection, as it does when
// there are many objects, or when they are written slowly.
const lateCanary = "no canary cilium/"

// quiet fails the test if the agent has logged any problem except the expected ones.
func (r readers) quiet(t *testing.T, expected ...string) {
	t.Helper()
	interop.Quiet(t, "our agent", r.agent.Complaints(t), append(expected, lateCanary)...)
}

// keep records that all objects were seen.
func keep(t *testing.T, direction interop.Direction, seed uint64, o model.Objects) {
	t.Helper()
	if t.Failed() {
		return
	}
	for _, kind := range model.Published() {
		interop.Keep(t, interop.Result{
			Release: interop.Newest, Kind: kind, Direction: direction, Path: interop.Direct,
			Objects: interop.Count(o, kind), Seed: seed,
		})
	}
}

// TestWeSeeWhatCiliumPublishes, with very many objects of all kinds: nothing counts as complete before Cilium has
// written its canaries; then all objects are seen, as created, changed and deleted.
func TestWeSeeWhatCiliumPublishes(t *testing.T) {
	t.Parallel()
	seed, n := interop.Seed(t), many(t)
	etcd := etcdtest.StartProcess(t)
	file := etcd.ConfigFile(t)
	m := newMaker(seed, "c2", 2)
	world := newWorld(m, n)

	p := interop.Publish(t, interop.Newest, file, interop.Config("c2", 2))
	r := startReaders(t, file)
	p.Put(t, world.objects())
	interop.Until(t, "our agent to know the cluster", time.Minute, func(ctx context.Context) error {
		return withoutData(ctx, r.agent)
	})
	p.Synced(t, model.Nodes)
	interop.Until(t, "the nodes to be complete", patience, func(ctx context.Context) error {
		c, err := agentapi.Get[api.Cluster](ctx, r.agent.Socket, "clusters", "c2")
		if err == nil && c.Counts.Nodes != n {
			err = fmt.Errorf("there are %d nodes", c.Counts.Nodes)
		}
		return err
	})
	c, err := agentapi.Get[api.Cluster](t.Context(), r.agent.Socket, "clusters", "c2")
	if err != nil || c.Ready || c.Synced.Services || c.Synced.Identities || c.Synced.IPs || c.Counts.Services+c.Counts.Identities+c.Counts.IPs > 0 {
		t.Errorf("before the canaries of the others: %+v, %v", c, err)
	}
	p.Synced(t, model.Published()...)
	created := world.follow(t, p, r, patience)
	r.quiet(t)
	interop.Quiet(t, "Cilium's publisher", p.Complaints())
	keep(t, interop.TheyWrite, seed, created)
}

// withoutData reports whether the agent is connected to c2, and has nothing of it.
func withoutData(ctx context.Context, a *interop.Agent) error {
	c, err := agentapi.Get[api.Cluster](ctx, a.Socket, "clusters", "c2")
	switch {
	case err != nil:
		return err
	case c.ID != 2:
		return errors.New("the cluster's configuration is not known")
	case c.Ready || c.Synced != (api.ByResource[bool]{}) || c.Counts != (api.ByResource[int]{}):
		return fmt.Errorf("it is said to have something: %+v", c)
	}
	return nil
}
