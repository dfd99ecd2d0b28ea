package kvtest

import (
	"context"
	"strconv"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

func lockLost(e *env) {
	w := e.writer()
	l := e.lock(w, "locks/l")
	e.store.ExpireLeases(e.T)
	_, err := w.Put(e.ctx, "k", nil, kvstore.Holding(l))
	e.wantErr("put", err, kvstore.ErrLockLeaseExpired)
	l.Unlock()
	again := e.lock(w, "locks/l")
	if _, err := w.Put(e.ctx, "k", nil, kvstore.Holding(again)); err != nil {
		e.Error(err)
	}
	again.Unlock()
	e.waiters(w, "locks/l", 0)
}

// held checks whether a lock is known to be lost, and how many are held.
func (e *env) held(what string, w kvstore.Writer, l *kvstore.Lock, want bool, locks int) {
	e.Helper()
	held := true
	select {
	case <-l.Lost():
		held = false
	default:
	}
	if n := w.Status().Locks; held != want || n != locks {
		e.Errorf("%s: the lock is held: %t, and %d are; want %t and %d", what, held, n, want, locks)
	}
}

// lostSoon waits until the holder of a lock is told.
func (e *env) lostSoon(l *kvstore.Lock) {
	e.Helper()
	select {
	case <-l.Lost():
	case <-e.ctx.Done():
		e.Fatalf("nobody is told that %s is lost", l.Path)
	}
}

func lockLostTold(e *env) {
	w := e.writer()
	a, b := e.lock(w, "locks/a"), e.lock(w, "locks/b")
	e.held("both are held", w, a, true, 2)
	e.store.ExpireLeases(e.T)
	e.lostSoon(a)
	e.lostSoon(b)
	e.held("both are lost", w, a, false, 0)
	a.Unlock()
	b.Unlock()

	for what, rely := range map[string]func(l *kvstore.Lock) error{
		"put": func(l *kvstore.Lock) error { return second(w.Put(e.ctx, "k", nil, kvstore.Holding(l))) },
		"get": func(l *kvstore.Lock) error { _, _, err := w.Get(e.ctx, "k", kvstore.Holding(l)); return err },
		"list": func(l *kvstore.Lock) error {
			return second(w.List(e.ctx, "p/", func(kvstore.Page) error { return nil }, kvstore.Holding(l)))
		},
	} {
		refused, other := e.lock(w, "locks/refused"), e.lock(w, "locks/other")
		e.store.Delete(e.T, refused.Key) // as who collects stale locks does
		e.wantErr(what, rely(refused), kvstore.ErrLockLeaseExpired)
		e.held("after a "+what+" that was refused", w, refused, false, 1)
		e.held("the other one", w, other, true, 1)
		refused.Unlock()
		other.Unlock()
		e.held("after it was given up", w, other, true, 0)
	}
	closed := e.lock(w, "locks/closed")
	w.Close()
	e.lostSoon(closed)
}

func second[T any](_ T, err error) error { return err }

func lockWaiterLost(e *env) {
	w := e.writer()
	e.put("locks/l/17", "")
	got := make(chan taken, 1)
	e.take(e.ctx, w, "locks/l", 0, got)
	e.waiters(w, "locks/l", 2)
	e.store.ExpireLeases(e.T)
	e.waiters(w, "locks/l", 1)
	e.nobody(got)
	e.store.Delete(e.T, "locks/l/17")
	l := e.got(got).lock
	if _, err := w.Put(e.ctx, "k", nil, kvstore.Holding(l)); err != nil {
		e.Error(err)
	}
	l.Unlock()
}

// increment reads a counter and writes it, both under the lock.
func increment(ctx context.Context, w kvstore.Writer, l *kvstore.Lock) error {
	kv, _, err := w.Get(ctx, "counter", kvstore.Holding(l))
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(string(kv.Value))
	if err != nil {
		return err
	}
	_, err = w.Put(ctx, "counter", []byte(strconv.Itoa(n+1)), kvstore.Holding(l))
	return err
}

func lockCounts(e *env) {
	const sessions, each = 16, 4
	e.put("counter", "0")
	errs := make(chan error, sessions)
	for range sessions {
		w := e.writer()
		go func() {
			for range each {
				l, err := w.Lock(e.ctx, "locks/counter")
				if err == nil {
					err = increment(e.ctx, w, l)
					l.Unlock()
				}
				if err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range sessions {
		if err := <-errs; err != nil {
			e.Error(err)
		}
	}
	c := e.open()
	e.has(c, "counter", strconv.Itoa(sessions*each))
	if keys := e.below(c, "locks/counter"); len(keys) != 0 {
		e.Errorf("left behind: %v", keys)
	}
}

func lockStatus(e *env) {
	w := e.writer()
	if s := w.Status(); s.LockLeases != 0 || s.Locks != 0 {
		e.Errorf("%+v", s)
	}
	a, b := e.lock(w, "locks/a"), e.lock(w, "locks/b")
	if s := w.Status(); s.LockLeases != 1 || s.Locks != 2 || s.Leases != 0 {
		e.Errorf("%+v", s)
	}
	a.Unlock()
	b.Unlock()
	if s := w.Status(); s.LockLeases != 1 || s.Locks != 0 {
		e.Errorf("%+v", s)
	}
}
