package kvtest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

func leaseCases() []testCase {
	return []testCase{
		{"who only reads, or writes without, has no lease", noLease},
		{"leased keys share a lease and vanish with it", leaseShared},
		{"when a lease has ended the observers are told its keys", leaseExpired},
		{"a put that finds its lease ended is made with another one", leaseReplaced},
		{"an observer can be replaced and removed", observers},
		{"leased keys outlive a session, and the next one goes on with their lease", leaseOutlives},
		{"keys of another etcd are told when the next session begins", leaseReplacedServer},
		{"keys of an etcd that was wiped are told when the next session begins", leaseWipedServer},
		{"revoking the leases deletes their keys and tells nobody", leaseRevoked},
	}
}

// told receives what an observer is told.
func (e *env) told(from <-chan []string) []string {
	e.Helper()
	select {
	case keys := <-from:
		return keys
	case <-e.ctx.Done():
		e.Fatal("the observer is not told")
		return nil
	}
}

// observe registers an observer.
func observe(w kvstore.Writer, prefix string) <-chan []string {
	told := make(chan []string, 100)
	w.OnLeaseExpired(prefix, func(keys []string) { told <- keys })
	return told
}

// untold checks that an observer is told nothing, for a while in which it would
// have been.
func (e *env) untold(from <-chan []string) {
	e.Helper()
	select {
	case keys := <-from:
		e.Errorf("the observer is told %v", keys)
	case <-time.After(50 * time.Millisecond):
	}
}

func (e *env) lease(w kvstore.Writer, key string) int64 {
	e.Helper()
	e.do(w.Put(e.ctx, key, []byte("v"), kvstore.Leased()))
	return e.has(w, key, "v").Lease
}

func noLease(e *env) {
	w := e.writer()
	e.do(w.Put(e.ctx, "k", nil))
	e.do(w.Delete(e.ctx, "k"))
	e.list(w, "p/")
	if s := w.Status(); s.Leases != 0 || s.LockLeases != 0 {
		e.Errorf("%+v", s)
	}
	e.lease(w, "k")
	if s := w.Status(); s.Leases != 1 || s.LockLeases != 0 {
		e.Errorf("%+v", s)
	}
}

func leaseShared(e *env) {
	w := e.writer()
	var leases []int64
	for i := range 5 {
		leases = append(leases, e.lease(w, fmt.Sprintf("p/%d", i)))
	}
	if slices.Sort(leases); leases[0] == 0 || len(slices.Compact(leases)) != 1 {
		e.Errorf("leases %x", leases)
	}
	e.do(w.Put(e.ctx, "p/unleased", []byte("v")))
	e.store.ExpireLeases(e.T)
	if keys := e.below(w, "p"); !slices.Equal(keys, []string{"p/unleased"}) {
		e.Errorf("left: %v", keys)
	}
}

func leaseExpired(e *env) {
	w := e.writer()
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
	if diff := cmp.Diff([]string{"o", "p/a", "p/again", "p/b"}, e.told(all)); diff != "" {
		e.Error(diff)
	}
	if diff := cmp.Diff([]string{"p/a", "p/again", "p/b"}, e.told(some)); diff != "" {
		e.Error(diff)
	}
	e.untold(none)
	if after := e.lease(w, "p/a"); after == before {
		e.Errorf("the key was put back with the lease %x that has ended", after)
	}
	e.store.ExpireLeases(e.T)
	if diff := cmp.Diff([]string{"p/a"}, e.told(some)); diff != "" {
		e.Errorf("the second time: %s", diff)
	}
}

func leaseReplaced(e *env) {
	w := e.writer()
	told := observe(w, "p/")
	for i := range 3 {
		e.lease(w, "p/a")
		e.lease(w, "p/b")
		e.store.ExpireLeases(e.T)
		e.lease(w, "p/b") // before or after the end was noticed
		keys := e.told(told)
		if !slices.Contains(keys, "p/a") {
			e.Errorf("round %d: told %v", i, keys)
		}
		e.has(w, "p/b", "v")
	}
}

func observers(e *env) {
	w := e.writer()
	first := observe(w, "p/")
	second, gone, last := observe(w, "p/"), observe(w, "p/a"), observe(w, "p")
	w.OnLeaseExpired("p/a", nil)
	w.OnLeaseExpired("nobody", nil)
	e.lease(w, "p/a")
	e.store.ExpireLeases(e.T)
	for _, told := range []<-chan []string{second, last} {
		if diff := cmp.Diff([]string{"p/a"}, e.told(told)); diff != "" {
			e.Error(diff)
		}
	}
	e.untold(first)
	e.untold(gone)
}

func leaseOutlives(e *env) {
	leases := kvstore.NewLeases()
	w := e.store.Writer(e.T, leases)
	told := observe(w, "p/")
	before := e.lease(w, "p/a")
	w.Close()
	e.has(e.open(), "p/a", "v")
	w = e.store.Writer(e.T, leases)
	if s := w.Status(); s.Leases != 1 {
		e.Errorf("%+v", s)
	}
	if r := e.do(w.Put(e.ctx, "p/a", []byte("v"), kvstore.Leased(), kvstore.IfChanged())); r.Done {
		e.Errorf("the key was written again: %+v", r)
	}
	if after := e.lease(w, "p/b"); after != before {
		e.Errorf("lease %x, was %x", after, before)
	}
	e.untold(told)
	e.store.ExpireLeases(e.T)
	if diff := cmp.Diff([]string{"p/a", "p/b"}, e.told(told)); diff != "" {
		e.Error(diff)
	}
	another := e.writer()
	if after := e.lease(another, "p/a"); after == before {
		e.Error("sessions of their own share a lease")
	}
}

func leaseReplacedServer(e *env) { leaseOtherServer(e, e.store.Replace) }

func leaseWipedServer(e *env) { leaseOtherServer(e, e.store.Wipe) }

func leaseOtherServer(e *env, change func(*testing.T)) {
	leases := kvstore.NewLeases()
	w := e.store.Writer(e.T, leases)
	told := observe(w, "p/")
	e.fill("q/", 9)
	e.lease(w, "p/a")
	change(e.T)
	e.until("head fails as server changed", func() error {
		_, err := w.Head(e.ctx)
		if errors.Is(err, kvstore.ErrServerChanged) {
			return nil
		}
		return fmt.Errorf("head: %w", err)
	})
	w.Close()
	w = e.store.Writer(e.T, leases)
	if diff := cmp.Diff([]string{"p/a"}, e.told(told)); diff != "" {
		e.Error(diff)
	}
	if s := w.Status(); s.Leases != 0 {
		e.Errorf("%+v", s)
	}
	e.has(w, "p/a", "-")
	e.lease(w, "p/a")
	e.untold(told)
}

func leaseRevoked(e *env) {
	leases := kvstore.NewLeases()
	w := e.store.Writer(e.T, leases)
	told := observe(w, "p/")
	before := e.lease(w, "p/a")
	if err := leases.Revoke(e.ctx); err != nil {
		e.Fatal(err)
	}
	e.has(w, "p/a", "-")
	if s := w.Status(); s.Leases != 0 {
		e.Errorf("%+v", s)
	}
	if after := e.lease(w, "p/a"); after == before {
		e.Errorf("the revoked lease %x is used again", after)
	}
	e.untold(told)
}
