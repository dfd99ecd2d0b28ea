package kvtest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

func lockCases() []testCase {
	return []testCase{
		{"a lock is a key below its path, named by its lease", lockKey},
		{"only one session holds a lock", lockExcludes},
		{"within a session one waits without a key, and each is served", lockLocal},
		{"among sessions waiters are served in the order of their keys", lockOrderOutside},
		{"whoever else creates a key below the path holds the lock", lockForeign},
		{"keys further below are those of other locks", lockNested},
		{"a lock ends with its context while waiting, and leaves nothing", lockCancelled},
		{"unlocking twice, also from elsewhere, is fine", unlockTwice},
		{"closing a session frees its locks at once", lockClose},
		{"a lock whose lease has ended is lost, and can be taken again", lockLost},
		{"the holder of a lock is notified when it is lost, and it does not count any more", lockLostNotified},
		{"a waiter whose lease ends gets the lock all the same", lockWaiterLost},
		{"16 sessions count under a lock without losing one", lockCounts},
		{"the status counts locks and their leases", lockStatus},
	}
}

// below returns the keys below a path.
func (e *env) below(c kvstore.Client, path string) []string {
	e.Helper()
	items, _ := e.list(c, path+"/")
	return keys(items)
}

func lockKey(e *env) {
	w := e.writer()
	l := e.lock(w, "locks/a b;/c")
	defer l.Unlock()
	items, _ := e.list(w, "locks/a b;/c/")
	if len(items) != 1 || string(items[0].Key) != l.Key || len(items[0].Value) != 0 {
		e.Fatalf("the lock %+v is %v", l, items)
	}
	kv := items[0]
	if want := fmt.Sprintf("locks/a b;/c/%x", kv.Lease); kv.Lease == 0 || l.Key != want || l.Path != "locks/a b;/c" {
		e.Errorf("the lock %+v, want the key %s", l, want)
	}
	if kv.ModRevision != l.Revision {
		e.Errorf("the lock's revision is %d, its key's %d", l.Revision, kv.ModRevision)
	}
}

// taken is a lock that a goroutine has taken, or the error.
type taken struct {
	who  int
	lock *kvstore.Lock
	err  error
}

// take locks in a goroutine.
func (e *env) take(ctx context.Context, w kvstore.Writer, path string, who int, to chan<- taken) {
	go func() {
		l, err := w.Lock(ctx, path)
		to <- taken{who, l, err}
	}()
}

// waiters waits until so many keys are below the path.
func (e *env) waiters(c kvstore.Client, path string, n int) {
	e.Helper()
	e.until("waiters", func() error {
		if got := len(e.below(c, path)); got != n {
			return fmt.Errorf("%d keys below %s, want %d", got, path, n)
		}
		return nil
	})
}

// got receives a lock.
func (e *env) got(from <-chan taken) taken {
	e.Helper()
	select {
	case t := <-from:
		if t.err != nil {
			e.Fatal(t.err)
		}
		return t
	case <-e.ctx.Done():
		e.Fatal("nobody gets the lock")
		return taken{}
	}
}

// nobody checks that nobody has the lock, as far as can be seen.
func (e *env) nobody(from <-chan taken) {
	e.Helper()
	select {
	case t := <-from:
		e.Fatalf("%d has the lock: %v", t.who, t.err)
	default:
	}
}

func lockExcludes(e *env) {
	a, b := e.writer(), e.writer()
	l := e.lock(a, "locks/l")
	got := make(chan taken, 1)
	e.take(e.ctx, b, "locks/l", 1, got)
	e.waiters(a, "locks/l", 2)
	e.nobody(got)
	e.lock(b, "locks/other").Unlock()
	l.Unlock()
	second := e.got(got)
	e.do(b.Put(e.ctx, "k", nil, kvstore.Holding(second.lock)))
	second.lock.Unlock()
	e.waiters(a, "locks/l", 0)
}

// lockLocal: that they are served in order is seen from within only.
func lockLocal(e *env) {
	w := e.writer()
	l := e.lock(w, "locks/l")
	const n = 5
	got := make(chan taken, n)
	for i := range n {
		e.take(e.ctx, w, "locks/l", i, got)
	}
	served := make(map[int]bool)
	for range n {
		e.nobody(got)
		if keys := e.below(w, "locks/l"); len(keys) != 1 {
			e.Errorf("local waiters have keys: %v", keys)
		}
		l.Unlock()
		t := e.got(got)
		served[t.who] = true
		l = t.lock
	}
	if len(served) != n {
		e.Errorf("served: %v", served)
	}
	l.Unlock()
}

func lockOrderOutside(e *env) {
	w := e.writer()
	l := e.lock(w, "locks/l")
	const n = 4
	got := make(chan taken, n)
	for i := range n {
		e.take(e.ctx, e.writer(), "locks/l", i, got)
		e.waiters(w, "locks/l", i+2)
	}
	for i := range n {
		e.nobody(got)
		l.Unlock()
		t := e.got(got)
		if t.who != i {
			e.Errorf("session %d is served before %d", t.who, i)
		}
		l = t.lock
	}
	l.Unlock()
}

func lockForeign(e *env) {
	w := e.writer()
	e.put("locks/l/17", "")
	got := make(chan taken, 1)
	e.take(e.ctx, w, "locks/l", 0, got)
	e.waiters(w, "locks/l", 2)
	e.put("locks/l/18", "") // who comes later does not matter
	e.nobody(got)
	e.store.Delete(e.T, "locks/l/17")
	l := e.got(got).lock
	if keys := e.below(w, "locks/l"); len(keys) != 2 {
		e.Errorf("below the path: %v", keys)
	}
	l.Unlock()
}

func lockNested(e *env) {
	a, b := e.writer(), e.writer()
	deep := e.lock(a, "locks/l/deep")
	l := e.lock(b, "locks/l")
	again := e.lock(b, "locks/l/deep2")
	for _, x := range []*kvstore.Lock{deep, l, again} {
		x.Unlock()
	}
}

func lockCancelled(e *env) {
	a, b := e.writer(), e.writer()
	l := e.lock(a, "locks/l")
	ctx, cancel := context.WithCancel(e.ctx)
	got := make(chan taken, 3)
	e.take(ctx, b, "locks/l", 0, got) // waits outside
	e.waiters(a, "locks/l", 2)
	e.take(ctx, b, "locks/l", 1, got) // waits within the session
	cancel()
	for range 2 {
		if t := <-got; !errors.Is(t.err, context.Canceled) {
			e.Errorf("waiter %d: %v, %v", t.who, t.lock, t.err)
		}
	}
	e.waiters(a, "locks/l", 1)
	e.take(e.ctx, b, "locks/l", 2, got)
	e.waiters(a, "locks/l", 2)
	l.Unlock()
	e.got(got).lock.Unlock()
	e.waiters(a, "locks/l", 0)
}

func unlockTwice(e *env) {
	w := e.writer()
	l := e.lock(w, "locks/l")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(l.Unlock)
	}
	wg.Wait()
	again := e.lock(w, "locks/l")
	l.Unlock()
	if _, err := w.Put(e.ctx, "k", nil, kvstore.Holding(again)); err != nil {
		e.Errorf("unlocking the earlier lock has ended the later one: %v", err)
	}
	again.Unlock()
	e.waiters(w, "locks/l", 0)
}

func lockClose(e *env) {
	a, b := e.writer(), e.writer()
	l := e.lock(a, "locks/l")
	a.Close()
	e.waiters(b, "locks/l", 0)
	again := e.lock(b, "locks/l")
	l.Unlock()
	e.do(b.Put(e.ctx, "k", nil, kvstore.Holding(again)))
	again.Unlock()
}
