package syncstore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// canary waits for a canary that was written after a revision.
func (d *desk) canary(name string, after int64) kvstore.KeyValue {
	d.t.Helper()
	var kv *kvstore.KeyValue
	waittest.Until(d.t, fmt.Sprintf("a canary %s written after %d", name, after), func() bool {
		var err error
		if kv, _, err = d.mem.Connect().Get(context.Background(), "synced/"+name); err != nil {
			d.t.Fatalf("%v", err)
		}
		return kv != nil && kv.ModRevision > after
	})
	if _, err := time.Parse(time.RFC3339, string(kv.Value)); err != nil || kv.Lease == 0 {
		d.t.Fatalf("%s has the lease %x: %v", kv.Value, kv.Lease, err)
	}
	return *kv
}

func TestCanaries(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	a, b := d.sync(Params{Prefix: "a/"}), d.sync(Params{Prefix: "b/"})
	for _, s := range []*Sync{a, b} {
		s.Put("k", []byte("1"))
	}
	c := NewCanaries(CanariesParams{Dir: "synced/", Writer: d.mem})
	c.Add("a", a)
	c.Add("nothing", nil)
	ctx, cancel := context.WithCancel(d.ctx)
	d.runIn(ctx, c.Run)
	d.canary("nothing", 0)
	c.Add("b", b) // while the canaries run
	b.Complete()
	d.canary("b", 0)
	if got := d.has("synced/"); got["a"] != "" || len(got) != 2 {
		t.Errorf("there are canaries %v", got)
	}
	a.Complete()
	first := d.canary("a", 0)

	d.mem.Unset("synced/a")
	second := d.canary("a", first.ModRevision)
	d.mem.Set("synced/a", "of somebody else, without a lease")
	third := d.canary("a", second.ModRevision+1)
	if b := d.canary("b", 0); b.ModRevision > first.ModRevision {
		t.Error("the canary of b was written again")
	}

	// A change of a key does not affect a canary. The end of a lease does.
	a.Put("k", []byte("2"))
	d.clean(a)
	d.until("a/", map[string]string{"k": "2"})
	if is := d.canary("a", 0); is.ModRevision != third.ModRevision {
		t.Errorf("the canary was written again at %d", is.ModRevision)
	}
	d.mem.ExpireLeases()
	fourth := d.canary("a", third.ModRevision)
	kv, _, err := d.mem.Get(d.ctx, "a/k")
	if err != nil || kv == nil || kv.ModRevision > fourth.ModRevision {
		t.Errorf("the key is %v, %v; the canary is of %d", kv, err, fourth.ModRevision)
	}

	// Each run writes each canary once.
	cancel()
	if err := c.running.Acquire(d.ctx, 1); err != nil { // after Run has ended
		t.Fatal(err)
	}
	c.running.Release(1)
	before := d.mem.Position().Revision
	ctx, cancel = context.WithCancel(d.ctx)
	d.runIn(ctx, c.Run)
	for _, name := range []string{"a", "b", "nothing"} {
		d.canary(name, before)
	}
	if rev := d.mem.Position().Revision; rev != before+3 {
		t.Errorf("three canaries took %d writes", rev-before)
	}
	cancel()
	must(t, c.Drain(d.ctx))
	d.until("synced/", map[string]string{})
	ctx, cancel = context.WithCancel(d.ctx)
	defer cancel()
	d.runIn(ctx, c.Run)
	c.Add("nothing", nil)
	d.canary("nothing", 0)
	if got := d.has("synced/"); len(got) != 1 {
		t.Errorf("drained, and there are %v", got)
	}
}
