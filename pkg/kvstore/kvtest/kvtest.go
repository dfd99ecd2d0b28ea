// Package kvtest is the conformance suite of kvstore.Client and kvstore.Writer: every statement
// in the comments of these interfaces is one named case. An implementation passes it with one line:
//
//	kvtest.Run(t, func(t *testing.T) kvtest.Store { ... })
package kvtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// PageSize is the maximum number of keys in a page, in the sessions that a [Store] opens.
const PageSize = 7

// Store is a server under test, which is empty at first. It opens sessions and does operations that
// clients cannot do. A method that fails also fails the test.
type Store interface {
	// Open begins a session with the server that is at the address now. The session
	// is closed at the end of the test.
	Open(t *testing.T) kvstore.Client
	// Writer begins a session as Open does, and runs it, so that about every second
	// leases are kept alive and lost leases are noticed. Its keys are tied to these
	// leases; nil: to leases that end with the session.
	Writer(t *testing.T, leases *kvstore.Leases) kvstore.Writer
	// Put writes keys with values at one revision, which it returns. The arguments are key, value, key, value, ...
	Put(t *testing.T, kvs ...string) int64
	// Delete deletes keys at one revision, which it returns.
	Delete(t *testing.T, keys ...string) int64
	// ExpireLeases ends all leases of all clients.
	ExpireLeases(t *testing.T)
	// Compact makes all revisions before the current one unavailable.
	Compact(t *testing.T)
	// Break cuts all connections; the server and its data stay.
	Break(t *testing.T)
	// Replace puts another, empty server with another cluster ID behind the same address.
	Replace(t *testing.T)
	// Wipe empties the server. Its cluster ID stays, and its revisions begin again.
	Wipe(t *testing.T)
}

// Run runs every case on a store of its own.
func Run(t *testing.T, start func(t *testing.T) Store) {
	t.Helper()
	for _, group := range []func(cases){readCases, watchCases, endCases, writeCases, updateCases, conditionCases, leaseCases, lockCases} {
		group(func(name string, run func(*env)) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				run(&env{T: t, ctx: waittest.Context(t), store: start(t)})
			})
		})
	}
}

// KeepRunning runs a session until the end of the test, and closes it.
func KeepRunning(t *testing.T, s interface {
	kvstore.Client
	Run(ctx context.Context, onProbe func(kvstore.Probe)) error
},
) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Run(t.Context(), nil) // it ends with the session or the test
	}()
	t.Cleanup(func() {
		s.Close()
		<-done
	})
}

// WantErr fails the test unless err is the wanted error and its text has all the parts.
func WantErr(t testing.TB, err, want error, parts ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	} else if err != nil {
		Contains(t, err, parts...)
	}
}

// Contains checks that an error's text has all the parts.
func Contains(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Error("no error")
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("error %q does not say %q", err, p)
		}
	}
}

// cases receives the cases of a group: a statement, and the function that proves it.
type cases func(name string, run func(*env))

func (is cases) onClient(name string, run func(*env, kvstore.Client)) {
	is(name, func(e *env) { run(e, e.open()) })
}

func (is cases) onWriter(name string, run func(*env, kvstore.Writer)) {
	is(name, func(e *env) { run(e, e.writer()) })
}

// env is the environment of a case.
type env struct {
	*testing.T
	ctx   context.Context //nolint:containedctx // of one test case
	store Store
}

// errorIf fails the case with this message if wrong is true. The case continues.
func (e *env) errorIf(wrong bool, format string, args ...any) {
	e.Helper()
	if wrong {
		e.Errorf(format, args...)
	}
}

// must ends the case if there is an error.
func (e *env) must(err error) {
	e.Helper()
	e.fatalIf(err != nil, "%v", err)
}

// fatalIf fails and ends the case with this message if wrong is true.
func (e *env) fatalIf(wrong bool, format string, args ...any) {
	e.Helper()
	if wrong {
		e.Fatalf(format, args...)
	}
}

func (e *env) open() kvstore.Client { return e.store.Open(e.T) }

func (e *env) writer() kvstore.Writer { return e.store.Writer(e.T, nil) }

func (e *env) put(kvs ...string) int64 { return e.store.Put(e.T, kvs...) }

// fill writes n keys prefix000, prefix001, ..., each at a revision of its own.
func (e *env) fill(prefix string, n int) (last int64) {
	for i := range n {
		last = e.put(fmt.Sprintf("%s%03d", prefix, i), fmt.Sprintf("v%d", i))
	}
	return last
}

func (e *env) list(c kvstore.Client, prefix string, opts ...kvstore.ReadOption) ([]kvstore.KeyValue, kvstore.Position) {
	e.Helper()
	var items []kvstore.KeyValue
	pages, at := e.pages(c, prefix, opts...)
	for _, p := range pages {
		items = append(items, p.Items...)
	}
	return items, at
}

func (e *env) pages(c kvstore.Client, prefix string, opts ...kvstore.ReadOption) (all []kvstore.Page, at kvstore.Position) {
	e.Helper()
	at, err := c.List(e.ctx, prefix, func(p kvstore.Page) error {
		all = append(all, p)
		return nil
	}, opts...)
	e.fatalIf(err != nil, "list %q: %v", prefix, err)
	return all, at
}

func (e *env) watch(c kvstore.Client, prefix string, after kvstore.Position, which ...kvstore.SelectOption) kvstore.Stream {
	e.Helper()
	s, err := c.Watch(e.ctx, prefix, after, which...)
	e.fatalIf(err != nil, "watch %q after %v: %v", prefix, after, err)
	e.Cleanup(s.Close)
	return s
}

func (e *env) head(c kvstore.Client) kvstore.Position {
	e.Helper()
	at, err := c.Head(e.ctx)
	e.fatalIf(err != nil, "head: %v", err)
	return at
}

func (e *env) recv(s kvstore.Stream) kvstore.Batch {
	e.Helper()
	b, err := s.Recv()
	e.fatalIf(err != nil, "recv: %v", err)
	return b
}

// events receives until there are n events, and checks the position of each batch.
func (e *env) events(s kvstore.Stream, n int) []kvstore.Event {
	e.Helper()
	var all []kvstore.Event
	var at kvstore.Position
	for len(all) < n {
		b := e.recv(s)
		e.fatalIf(b.At.Revision < at.Revision, "the position went back from %d to %d", at.Revision, b.At.Revision)
		at = b.At
		all = append(all, b.Events...)
		if k := len(b.Events); k > 0 && !b.Partial && at.Revision < b.Events[k-1].ModRevision {
			e.Fatalf("position %d is behind the event of revision %d", at.Revision, b.Events[k-1].ModRevision)
		}
	}
	return all
}

func (e *env) wantErr(what string, err, want error) {
	e.Helper()
	e.errorIf(!errors.Is(err, want), "%s: error %v, want %v", what, err, want)
}

// second returns the error of a call with two results.
func second[T any](_ T, err error) error { return err }

func (e *env) same(what string, want, got any) {
	e.Helper()
	diff := cmp.Diff(want, got)
	e.errorIf(diff != "", "%s (-want +got):\n%s", what, diff)
}

func (e *env) counts(w kvstore.Writer, leases, lockLeases, locks int) {
	e.Helper()
	s := w.Status()
	e.same("leases, leases of locks, and locks", []int{leases, lockLeases, locks}, []int{s.Leases, s.LockLeases, s.Locks})
}

func keys(items []kvstore.KeyValue) (all []string) {
	for _, kv := range items {
		all = append(all, string(kv.Key))
	}
	return all
}

func anything(kvstore.Page) error { return nil }

func (e *env) untilChanged(c kvstore.Client) {
	e.Helper()
	waittest.Try(e.T, "head to fail as server changed", func() error {
		_, err := c.Head(e.ctx)
		if errors.Is(err, kvstore.ErrServerChanged) {
			return nil
		}
		return fmt.Errorf("head: %w", err)
	})
}

func (e *env) readsFail(ctx context.Context, c kvstore.Client, at kvstore.Position, want error) {
	e.Helper()
	_, _, err := c.Get(ctx, "k")
	e.wantErr("get", err, want)
	e.wantErr("list", second(c.List(ctx, "p/", anything)), want)
	e.wantErr("head", second(c.Head(ctx)), want)
	e.wantErr("recall", second(c.Recall(ctx, "p/", "", at, 1)), want)
	e.wantErr("watch", second(c.Watch(ctx, "p/", at)), want)
}

// recvFails checks that Recv of a stream without pending batches fails, and that the next Recv fails as well.
func (e *env) recvFails(s kvstore.Stream, want error) {
	e.Helper()
	recv := func() error { return second(s.Recv()) }
	e.wantErr("recv", e.within("recv", recv), want)
	e.wantErr("another recv", recv(), want)
}

// follow returns the texts of the n events after a position.
func (e *env) follow(c kvstore.Client, prefix string, after kvstore.Position, n int, which ...kvstore.SelectOption) []string {
	e.Helper()
	return text(after, e.events(e.watch(c, prefix, after, which...), n))
}

// text renders events in short: put k=v@1, delete k@2, with the revisions counted from a position.
func text(from kvstore.Position, events []kvstore.Event) []string {
	var out []string
	for _, ev := range events {
		rev := ev.ModRevision - from.Revision
		s := fmt.Sprintf("%v %s@%d", ev.Type, ev.Key, rev)
		if ev.Type == kvstore.EventPut {
			s = fmt.Sprintf("%v %s=%s@%d", ev.Type, ev.Key, ev.Value, rev)
		}
		out = append(out, s)
	}
	return out
}

// within runs f in another goroutine and waits for its end.
func (e *env) within(what string, f func() error) error {
	e.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	return waittest.Receive(e.T, "the end of "+what, done)
}
