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
	e.do(w.Put(e.ctx, "k", nil, kvstore.Holding(again)))
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

// lostSoon waits until the holder of a lock is notified.
func (e *env) lostSoon(l *kvstore.Lock) {
	e.Helper()
	select {
	case <-l.Lost():
	case <-e.ctx.Done():
		e.Fatalf("nobody is notified that %s is lost", l.Path)
	}
}

func lockLostNotified(e *env) {
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
		"put":  func(l *kvstore.Lock) error { return second(w.Put(e.ctx, "k", nil, kvstore.Holding(l))) },
		"get":  func(l *kvstore.Lock) error { _, _, err := w.Get(e.ctx, "k", kvstore.Holding(l)); return err },
		"list": func(l *kvstore.Lock) error { return second(w.List(e.ctx, "p/", anything, kvstore.Holding(l))) },
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
	e.do(w.Put(e.ctx, "k", nil, kvstore.Holding(l)))
	l.Unlock()
}

// Increment adds 1 to the number in the key "counter", which is 0 when absent, by a read and a
// write that both rely on the lock.
func Increment(ctx context.Context, w kvstore.Writer, l *kvstore.Lock) error {
	kv, _, err := w.Get(ctx, "counter", kvstore.Holding(l))
	n := 0
	if err == nil && kv != nil {
		n, err = strconv.Atoi(string(kv.Value))
	}
	if err != nil {
		return err
	}
	return second(w.Put(ctx, "counter", []byte(strconv.Itoa(n+1)), kvstore.Holding(l)))
}

// CountUnderLock takes the lock "locks/counter" and calls [Increment], so many times.
func CountUnderLock(ctx context.Context, w kvstore.Writer, times int) error {
	for range times {
		l, err := w.Lock(ctx, "locks/counter")
		if err != nil {
			return err
		}
		err = Increment(ctx, w, l)
		l.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

func lockCounts(e *env) {
	const sessions, each = 16, 4
	errs := make(chan error, sessions)
	for range sessions {
		w := e.writer()
		go func() { errs <- CountUnderLock(e.ctx, w, each) }()
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
	e.counts(w, 0, 0, 0)
	a, b := e.lock(w, "locks/a"), e.lock(w, "locks/b")
	e.counts(w, 0, 1, 2)
	a.Unlock()
	b.Unlock()
	e.counts(w, 0, 1, 0)
}
