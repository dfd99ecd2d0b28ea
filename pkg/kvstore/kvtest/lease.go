package kvtest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func leaseCases(is cases) {
	is.onWriter("the status counts leases and locks; who only reads, or writes without, has no lease", func(e *env, w kvstore.Writer) {
		e.do(w.Put(e.ctx, "k", nil))
		e.do(w.Delete(e.ctx, "k"))
		e.list(w, "p/")
		e.counts(w, 0, 0, 0)
		e.lease(w, "k")
		e.counts(w, 1, 0, 0)
		a, b := e.lock(w, "locks/a"), e.lock(w, "locks/b")
		e.counts(w, 1, 1, 2)
		a.Unlock()
		b.Unlock()
		e.counts(w, 1, 1, 0)
	})
	is.onWriter("leased keys share a lease and vanish with it", func(e *env, w kvstore.Writer) {
		var leases []int64
		for i := range 5 {
			leases = append(leases, e.lease(w, fmt.Sprintf("p/%d", i)))
		}
		slices.Sort(leases)
		e.errorIf(leases[0] == 0 || len(slices.Compact(leases)) != 1, "leases %x", leases)
		e.do(w.Put(e.ctx, "p/unleased", []byte("v")))
		e.store.ExpireLeases(e.T)
		e.same("left", []string{"p/unleased"}, e.below(w, "p"))
	})
	is.onWriter("when a lease has ended the observers are notified of its keys", func(e *env, w kvstore.Writer) {
		all, some, none := observe(w, ""), observe(w, "p/"), observe(w, "q/")
		for _, key := range []string{"p/b", "p/a", "o", "p/deleted", "p/unleased", "p/below/1", "p/below/2", "p/again"} {
			e.lease(w, key)
		}
		e.do(w.Put(e.ctx, "p/absent", nil, kvstore.Leased(), kvstore.IfOther("nothing", nil)))
		e.do(w.Delete(e.ctx, "p/deleted"))
		e.do(w.Delete(e.ctx, "p/again"))
		e.lease(w, "p/again")
		e.do(w.Put(e.ctx, "p/unleased", nil))
		e.do(w.DeletePrefix(e.ctx, "p/below/"))
		e.do(w.Put(e.ctx, "p/a", []byte("v"), kvstore.Leased(), kvstore.IfChanged()))
		before := e.has(w, "p/a", "v").Lease
		e.store.ExpireLeases(e.T)
		e.loses(all, "o", "p/a", "p/again", "p/b")
		e.loses(some, "p/a", "p/again", "p/b")
		e.losesNothing(none)
		after := e.lease(w, "p/a")
		e.errorIf(after == before, "the key was put back with the lease %x that has ended", after)
		e.store.ExpireLeases(e.T)
		e.loses(some, "p/a")
	})
	is.onWriter("a put that finds its lease ended is made with another one", func(e *env, w kvstore.Writer) {
		lost := observe(w, "p/")
		for i := range 3 {
			e.lease(w, "p/a")
			e.lease(w, "p/b")
			e.store.ExpireLeases(e.T)
			e.lease(w, "p/b") // before or after the session has noticed the end
			keys := e.lost(lost)
			e.errorIf(!slices.Contains(keys, "p/a"), "round %d: lost %v", i, keys)
			e.has(w, "p/b", "v")
		}
	})
	is.onWriter("an observer can be replaced and removed", func(e *env, w kvstore.Writer) {
		first := observe(w, "p/")
		second, gone, last := observe(w, "p/"), observe(w, "p/a"), observe(w, "p")
		w.OnLeaseExpired("p/a", nil)
		w.OnLeaseExpired("nobody", nil)
		e.lease(w, "p/a")
		e.store.ExpireLeases(e.T)
		for _, lost := range []<-chan []string{second, last} {
			e.loses(lost, "p/a")
		}
		e.losesNothing(first)
		e.losesNothing(gone)
	})
	is("leased keys outlive a session, and the next one goes on with their lease", func(e *env) {
		leases := kvstore.NewLeases()
		w := e.store.Writer(e.T, leases)
		lost := observe(w, "p/")
		before := e.lease(w, "p/a")
		w.Close()
		e.has(e.open(), "p/a", "v")
		w = e.store.Writer(e.T, leases)
		e.counts(w, 1, 0, 0)
		r := e.do(w.Put(e.ctx, "p/a", []byte("v"), kvstore.Leased(), kvstore.IfChanged()))
		e.errorIf(r.Done, "the key was written again: %+v", r)
		e.same("the lease", before, e.lease(w, "p/b"))
		e.losesNothing(lost)
		e.store.ExpireLeases(e.T)
		e.loses(lost, "p/a", "p/b")
		another := e.writer()
		e.errorIf(e.lease(another, "p/a") == before, "sessions of their own share a lease")
	})
	is("keys of another etcd are lost when the next session begins", func(e *env) { leaseOtherServer(e, e.store.Replace) })
	is("keys of an etcd that was wiped are lost when the next session begins", func(e *env) { leaseOtherServer(e, e.store.Wipe) })
	is("revoking the leases deletes their keys and notifies nobody", func(e *env) {
		leases := kvstore.NewLeases()
		w := e.store.Writer(e.T, leases)
		lost := observe(w, "p/")
		before := e.lease(w, "p/a")
		e.must(leases.Revoke(e.ctx))
		e.has(w, "p/a", "-")
		e.counts(w, 0, 0, 0)
		after := e.lease(w, "p/a")
		e.errorIf(after == before, "the revoked lease %x is used again", after)
		e.losesNothing(lost)
	})
}

// observe registers an observer and returns its notifications.
func observe(w kvstore.Writer, prefix string) <-chan []string {
	lost := make(chan []string, 100)
	w.OnLeaseExpired(prefix, func(keys []string) { lost <- keys })
	return lost
}

func (e *env) loses(from <-chan []string, want ...string) {
	e.Helper()
	e.same("lost", want, e.lost(from))
}

// losesNothing checks that an observer is not notified for a while.
func (e *env) losesNothing(from <-chan []string) {
	e.Helper()
	select {
	case keys := <-from:
		e.Errorf("the observer is notified of %v", keys)
	case <-time.After(50 * time.Millisecond):
	}
}

func (e *env) lease(w kvstore.Writer, key string) int64 {
	e.Helper()
	e.do(w.Put(e.ctx, key, []byte("v"), kvstore.Leased()))
	return e.has(w, key, "v").Lease
}

func leaseOtherServer(e *env, change func(*testing.T)) {
	leases := kvstore.NewLeases()
	w := e.store.Writer(e.T, leases)
	lost := observe(w, "p/")
	e.fill("q/", 9)
	e.lease(w, "p/a")
	change(e.T)
	e.untilChanged(w)
	w.Close()
	w = e.store.Writer(e.T, leases)
	e.loses(lost, "p/a")
	e.counts(w, 0, 0, 0)
	e.has(w, "p/a", "-")
	e.lease(w, "p/a")
	e.losesNothing(lost)
}

func (e *env) lost(from <-chan []string) []string {
	e.Helper()
	return waittest.Receive(e.T, "the observer's notification", from)
}
