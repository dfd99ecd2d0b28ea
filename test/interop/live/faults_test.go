package live

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/members/agentapi"
	"github.com/mesh-agent/mesh-agent/test/interop"
	"github.com/mesh-agent/mesh-agent/test/interop/model"
	"github.com/mesh-agent/mesh-agent/test/interop/ours"
)

// soon is how long small tests wait for events that take a moment.
const soon = 2 * time.Minute

// few is the number of objects of each kind in the small tests: more than fit on one of Cilium's leases, and, all kinds
// together, on one page of a list.
const few = 300

// TestAllThatCiliumPublishedEndsWithItsLeases: the publisher is killed.
func TestAllThatCiliumPublishedEndsWithItsLeases(t *testing.T) {
	t.Parallel()
	file := etcdtest.Start(t).ConfigFile(t)
	world := newWorld(newMaker(interop.Seed(t), "c2", 2), few)
	p := interop.Publish(t, interop.Newest, file, interop.Config("c2", 2), "--kvstore-lease-ttl="+shortTTL.String())
	r := startReaders(t, file)
	p.Put(t, world.objects())
	p.Synced(t, model.Published()...)
	r.see(t, "everything", soon, world.objects())
	p.Kill()
	killed := time.Now()
	interop.Until(t, "our reader to see nothing", goneWithin, func(context.Context) error {
		got, _ := r.entries.View()
		return interop.Same(model.Objects{}, got)
	})
	interop.Until(t, "our agent to see nothing", goneWithin, func(ctx context.Context) error { return empty(ctx, r.agent) })
	t.Logf("gone %s after the publisher", time.Since(killed).Round(time.Second))
	interop.Quiet(t, "Cilium's publisher", p.Complaints())
	r.quiet(t, "MESH-1007") // its configuration ended with the leases too, and our agent may have logged that
}

// empty reports whether the agent shows nothing of other clusters.
func empty(ctx context.Context, a *interop.Agent) error {
	st, err := agentapi.Get[api.Status](ctx, a.Socket, "status")
	if err == nil && st.Summary.Nodes+st.Summary.Services+st.Summary.IPs+st.Summary.Identities > 0 {
		err = fmt.Errorf("it shows %+v", st.Summary)
	}
	return err
}

// TestWhatChangedWhileCiliumsEtcdWasAway is seen after the etcd returns: it is killed and started again, frozen, and
// replaced by an empty one, where Cilium starts again. (Cilium would write its configuration again by itself after 5
// minutes: it does not notice that another etcd answers.)
func TestWhatChangedWhileCiliumsEtcdWasAway(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.StartProcess(t)
	file := etcd.ConfigFile(t)
	world := newWorld(newMaker(interop.Seed(t), "c2", 2), few)
	p := interop.Publish(t, interop.Newest, file, interop.Config("c2", 2))
	r := startReaders(t, file)
	overFaults(t, etcd, p, world, r)

	p.Kill()
	world.churn(few/4, few/4)
	etcd.RestartAsOther(t)
	again := interop.Publish(t, interop.Newest, file, interop.Config("c2", 2))
	again.Put(t, world.objects())
	again.Synced(t, model.Published()...)
	r.see(t, "everything in another etcd", soon, world.objects())
	r.quiet(t, weAreAway()...)
	interop.Quiet(t, "Cilium's publisher", p.Complaints(), ciliumIsAway()...)
	interop.Quiet(t, "Cilium's second publisher", again.Complaints())
}

// TestWhatChangedWhileOurEtcdWasAway is the same, but we publish: an empty etcd is filled again automatically.
func TestWhatChangedWhileOurEtcdWasAway(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.StartProcess(t)
	file := etcd.ConfigFile(t)
	world := newWorld(newMaker(interop.Seed(t), "c2", 2), few)
	p := ours.Publish(t, file, interop.Config("c2", 2))
	r := readWithCilium(t, map[string]string{"c2": file})
	overFaults(t, etcd, p, world, r)

	etcd.Kill(t)
	changed, deleted := world.churn(few/4, few/4)
	p.Put(t, changed)
	p.Delete(t, deleted)
	etcd.RestartAsOther(t)
	r.see(t, "everything in another etcd", soon, world.objects())
	interop.Quiet(t, "Cilium's reader", r.Complaints(), ciliumIsAway()...)
}

// overFaults churns a cluster while its etcd is away.
func overFaults(t *testing.T, etcd *etcdtest.Process, p publisher, w *world, r reader) {
	t.Helper()
	p.Put(t, w.objects())
	p.Synced(t, model.Published()...)
	r.see(t, "everything", soon, w.objects())
	for _, fault := range []struct {
		name       string
		away, back func()
	}{
		{"after the etcd was killed", func() { etcd.Kill(t) }, func() { etcd.Restart(t) }},
		{"after the etcd was frozen", func() { etcd.Freeze(t) }, func() { etcd.Thaw(t) }},
	} {
		fault.away()
		changed, deleted := w.churn(few/4, few/4)
		p.Put(t, changed)
		p.Delete(t, deleted)
		fault.back()
		r.see(t, "everything "+fault.name, soon, w.objects())
	}
}

// ciliumIsAway are messages of Cilium's side while an etcd is away or replaced.
func ciliumIsAway() []string {
	return []string{
		"retrying of unary invoker failed",              // the client of etcd
		"Failed upserting key in kvstore. Retrying...",  // the publisher
		"Failed deleting key from kvstore. Retrying...", // the publisher
		"Lease expired",                  // the publisher
		"Unable to update heartbeat key", // the publisher
		"Timer job failed",               // the publisher, for the same reason
		"Error observed on etcd connection, reconnecting etcd", // the reader, about another etcd
	}
}

// weAreAway are messages of our agent while an etcd is away or replaced.
func weAreAway() []string {
	return []string{"MESH-1004", "MESH-1007", "MESH-1009", "MESH-1011", lateCanary}
}

// TestKVStoreModeNeedsNoCanaries: no reader waits for a canary.
func TestKVStoreModeNeedsNoCanaries(t *testing.T) {
	t.Parallel()
	for name, start := range publishers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := etcdtest.Start(t).ConfigFile(t)
			world := newWorld(newMaker(interop.Seed(t), "c2", 2), few)
			c := interop.Config("c2", 2)
			c.SyncedCanaries = false
			p := start(t, file, c)
			r, cilium := startReaders(t, file), readWithCilium(t, map[string]string{"c2": file})
			p.Put(t, world.objects())
			r.see(t, "everything", soon, world.objects())
			cilium.see(t, "everything", soon, world.objects())
			r.quiet(t)
			interop.Quiet(t, "Cilium's reader", cilium.Complaints())
		})
	}
}
