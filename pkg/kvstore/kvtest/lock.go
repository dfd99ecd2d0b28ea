package kvtest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func lockCases(is cases) {
	is.onWriter("a lock is a key below its path, named by its lease", func(e *env, w kvstore.Writer) {
		l := e.lock(w, "locks/a b;/c")
		defer l.Unlock()
		items, _ := e.list(w, "locks/a b;/c/")
		e.fatalIf(len(items) != 1 || string(items[0].Key) != l.Key || len(items[0].Value) != 0, "the lock %+v is %v", l, items)
		kv := items[0]
		want := fmt.Sprintf("locks/a b;/c/%x", kv.Lease)
		e.errorIf(kv.Lease == 0 || l.Key != want || l.Path != "locks/a b;/c", "the lock %+v, want the key %s", l, want)
		e.errorIf(kv.ModRevision != l.Revision, "the lock's revision is %d, its key's %d", l.Revision, kv.ModRevision)
	})
	// The order in which they are served is only visible inside the implementation.
	is.onWriter("within a session one waits without a key, and each is served", func(e *env, w kvstore.Writer) {
		l := e.lock(w, "locks/l")
		const n = 5
		got := make(chan taken, n)
		for i := range n {
			e.take(e.ctx, w, i, got)
		}
		served := make(map[int]bool)
		for range n {
			e.nobody(got)
			e.same("keys, also of local waiters", []string{l.Key}, e.below(w, "locks/l"))
			l.Unlock()
			t := e.got(got)
			served[t.who] = true
			l = t.lock
		}
		e.errorIf(len(served) != n, "served: %v", served)
		l.Unlock()
	})
	is.onWriter("only one session holds a lock, and waiters are served in the order of their keys", func(e *env, w kvstore.Writer) {
		l := e.lock(w, "locks/l")
		const n = 4
		got := make(chan taken, n)
		var waiting [n]kvstore.Writer
		for i := range n {
			waiting[i] = e.writer()
			e.take(e.ctx, waiting[i], i, got)
			e.waiters(w, "locks/l", i+2)
		}
		for i := range n {
			e.nobody(got)
			e.lock(waiting[i], "locks/other").Unlock() // a session that waits for one lock can take others
			l.Unlock()
			t := e.got(got)
			e.errorIf(t.who != i, "session %d is served before %d", t.who, i)
			l = t.lock
			e.do(w.Put(e.ctx, "k", nil, kvstore.Holding(l)))
		}
		l.Unlock()
		e.waiters(w, "locks/l", 0)
	})
	is.onWriter("whoever else creates a key below the path holds the lock", func(e *env, w kvstore.Writer) {
		e.put("locks/l/17", "")
		got := make(chan taken, 1)
		e.take(e.ctx, w, 0, got)
		e.waiters(w, "locks/l", 2)
		e.put("locks/l/18", "") // later keys do not matter
		e.nobody(got)
		e.store.Delete(e.T, "locks/l/17")
		l := e.got(got).lock
		e.same("below the path", 2, len(e.below(w, "locks/l")))
		l.Unlock()
	})
	is("keys further below are those of other locks", func(e *env) {
		a, b := e.writer(), e.writer()
		defer e.lock(a, "locks/l/deep").Unlock()
		defer e.lock(b, "locks/l").Unlock()
		e.lock(b, "locks/l/deep2").Unlock()
	})
	is("a lock ends with its context while waiting, and leaves nothing", func(e *env) {
		a, b := e.writer(), e.writer()
		l := e.lock(a, "locks/l")
		ctx, cancel := context.WithCancel(e.ctx)
		got := make(chan taken, 3)
		e.take(ctx, b, 0, got) // waits with a key in the kvstore
		e.waiters(a, "locks/l", 2)
		e.take(ctx, b, 1, got) // waits within the session
		cancel()
		for range 2 {
			t := <-got
			e.errorIf(!errors.Is(t.err, context.Canceled), "waiter %d: %v, %v", t.who, t.lock, t.err)
		}
		e.waiters(a, "locks/l", 1)
		e.take(e.ctx, b, 2, got)
		e.waiters(a, "locks/l", 2)
		l.Unlock()
		e.got(got).lock.Unlock()
		e.waiters(a, "locks/l", 0)
	})
	is.onWriter("unlocking twice, also from elsewhere, is fine", func(e *env, w kvstore.Writer) {
		l := e.lock(w, "locks/l")
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(l.Unlock)
		}
		wg.Wait()
		again := e.lock(w, "locks/l")
		l.Unlock()
		e.do(w.Put(e.ctx, "k", nil, kvstore.Holding(again))) // unlocking the earlier lock has not ended this one
		again.Unlock()
		e.waiters(w, "locks/l", 0)
	})
	is("closing a session frees its locks at once", func(e *env) {
		a, b := e.writer(), e.writer()
		l := e.lock(a, "locks/l")
		a.Close()
		e.waiters(b, "locks/l", 0)
		again := e.lock(b, "locks/l")
		l.Unlock()
		e.do(b.Put(e.ctx, "k", nil, kvstore.Holding(again)))
		again.Unlock()
	})
	is.onWriter("a lock whose lease has ended is lost, which its holder is notified of, and can be taken again", func(e *env, w kvstore.Writer) {
		a, b := e.lock(w, "locks/a"), e.lock(w, "locks/b")
		e.held("both are held", w, a, true, 2)
		e.store.ExpireLeases(e.T)
		e.wantErr("put", second(w.Put(e.ctx, "k", nil, kvstore.Holding(a))), kvstore.ErrLockLeaseExpired)
		e.lock(w, "locks/c").Unlock() // at once, although the session may still count its old lease as alive
		waittest.Receive(e.T, "the end of a lock", a.Lost())
		waittest.Receive(e.T, "the end of a lock", b.Lost())
		e.held("both are lost", w, a, false, 0)
		a.Unlock()
		b.Unlock()
		again := e.lock(w, "locks/a")
		e.do(w.Put(e.ctx, "k", nil, kvstore.Holding(again)))
		again.Unlock()
		e.waiters(w, "locks/a", 0)

		for what, rely := range map[string]func(l *kvstore.Lock) error{
			"put":  func(l *kvstore.Lock) error { return second(w.Put(e.ctx, "k", nil, kvstore.Holding(l))) },
			"get":  func(l *kvstore.Lock) error { _, _, err := w.Get(e.ctx, "k", kvstore.Holding(l)); return err },
			"list": func(l *kvstore.Lock) error { return second(w.List(e.ctx, "p/", anything, kvstore.Holding(l))) },
		} {
			refused, other := e.lock(w, "locks/refused"), e.lock(w, "locks/other")
			e.store.Delete(e.T, refused.Key) // like a garbage collection of stale locks
			e.wantErr(what, rely(refused), kvstore.ErrLockLeaseExpired)
			e.held("after a "+what+" that was refused", w, refused, false, 1)
			e.held("the other one", w, other, true, 1)
			refused.Unlock()
			other.Unlock()
			e.held("after it was given up", w, other, true, 0)
		}
		closed := e.lock(w, "locks/closed")
		w.Close()
		waittest.Receive(e.T, "the end of a lock", closed.Lost())
	})
	is.onWriter("a waiter whose lease ends gets the lock all the same", func(e *env, w kvstore.Writer) {
		e.put("locks/l/17", "")
		got := make(chan taken, 1)
		e.take(e.ctx, w, 0, got)
		e.waiters(w, "locks/l", 2)
		e.store.ExpireLeases(e.T)
		e.waiters(w, "locks/l", 1)
		e.nobody(got)
		e.store.Delete(e.T, "locks/l/17")
		l := e.got(got).lock
		e.do(w.Put(e.ctx, "k", nil, kvstore.Holding(l)))
		l.Unlock()
	})
	is("16 sessions count under a lock without losing one", func(e *env) {
		const sessions, each = 16, 4
		errs := make(chan error, sessions)
		for range sessions {
			w := e.writer()
			go func() { errs <- CountUnderLock(e.ctx, w, each) }()
		}
		for range sessions {
			e.wantErr("counting", <-errs, nil)
		}
		c := e.open()
		e.has(c, "counter", strconv.Itoa(sessions*each))
		e.waiters(c, "locks/counter", 0) // the key of an unlock that took too long is deleted later
	})
}

func (e *env) below(c kvstore.Client, path string) []string {
	e.Helper()
	items, _ := e.list(c, path+"/")
	return keys(items)
}

// taken is the result of take: the lock or the error.
type taken struct {
	who  int
	lock *kvstore.Lock
	err  error
}

// take takes the lock "locks/l" in another goroutine.
func (e *env) take(ctx context.Context, w kvstore.Writer, who int, to chan<- taken) {
	go func() {
		l, err := w.Lock(ctx, "locks/l")
		to <- taken{who, l, err}
	}()
}

func (e *env) waiters(c kvstore.Client, path string, n int) {
	e.Helper()
	waittest.Try(e.T, "waiters", func() error {
		if got := len(e.below(c, path)); got != n {
			return fmt.Errorf("%d keys below %s, want %d", got, path, n)
		}
		return nil
	})
}

func (e *env) nobody(from <-chan taken) {
	e.Helper()
	// Fail if a goroutine has already taken the lock.
	select {
	case t := <-from:
		e.Fatalf("%d has the lock: %v", t.who, t.err)
	default:
	}
}

func (e *env) got(from <-chan taken) taken {
	e.Helper()
	t := waittest.Receive(e.T, "the lock", from)
	e.must(t.err)
	return t
}

// held checks whether a lock is held, as far as is known, and how many locks are held.
func (e *env) held(what string, w kvstore.Writer, l *kvstore.Lock, want bool, locks int) {
	e.Helper()
	held := true
	select {
	case <-l.Lost():
		held = false
	default:
	}
	n := w.Status().Locks
	e.errorIf(held != want || n != locks, "%s: the lock is held: %t, and %d are; want %t and %d", what, held, n, want, locks)
}

// Increment adds 1 to the number in the key "counter", which is 0 when absent, with a read and a
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

// CountUnderLock takes the lock "locks/counter", calls [Increment] and unlocks it, times times.
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
