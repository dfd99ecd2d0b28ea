package syncstore

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
	"github.com/mesh-agent/mesh-agent/pkg/store/internal/follow"
)

// far is a writer with a latency in each direction to its server, which accepts a limited number of requests per
// second.
type far struct {
	*memory.Store
	away  time.Duration
	limit *rate.Limiter
}

func newFar(mem *memory.Store, away time.Duration, limit int) *far {
	f := &far{mem, away, rate.NewLimiter(rate.Inf, 1)}
	if limit > 0 {
		f.limit = rate.NewLimiter(rate.Limit(limit), limit)
	}
	return f
}

// there and back delay a request and its response.
func (f *far) there(ctx context.Context) error {
	if err := f.limit.Wait(ctx); err != nil {
		return err
	}
	return waiting.Sleep(ctx, f.away)
}

func (f *far) back(ctx context.Context) { _ = waiting.Sleep(ctx, f.away) }

func (f *far) Update(ctx context.Context, writes []kvstore.Write, opts ...kvstore.Option) (kvstore.Result, error) {
	if err := f.there(ctx); err != nil {
		return kvstore.Result{}, err
	}
	defer f.back(ctx)
	return f.Store.Update(ctx, writes, opts...)
}

func (f *far) Put(ctx context.Context, key string, value []byte, opts ...kvstore.Option) (kvstore.Result, error) {
	if err := f.there(ctx); err != nil {
		return kvstore.Result{}, err
	}
	defer f.back(ctx)
	return f.Store.Put(ctx, key, value, opts...)
}

func (f *far) Head(ctx context.Context) (kvstore.Position, error) {
	if err := f.there(ctx); err != nil {
		return kvstore.Position{}, err
	}
	defer f.back(ctx)
	return f.Store.Head(ctx)
}

// busy is an owner that changes its names endlessly.
type busy struct {
	s      *Sync
	names  int
	n      int
	wanted map[string]int
}

func (b *busy) change() {
	name := fmt.Sprint("n", b.n%b.names)
	b.n++
	b.wanted[name] = b.n
	b.s.Put(name, []byte(strconv.Itoa(b.n)))
}

// keepOn makes this number of changes per second, until ctx ends.
func (b *busy) keepOn(ctx context.Context, rate int) error {
	for {
		if err := waiting.Sleep(ctx, time.Second/time.Duration(rate)); err != nil {
			return err
		}
		b.change()
	}
}

// TestACanaryWhileChangesGoOn: the canary is written for any latency, rate of changes and limit of requests. It is
// written after everything that was wanted when the owner had given all.
func TestACanaryWhileChangesGoOn(t *testing.T) {
	t.Parallel()
	for _, away := range []time.Duration{0, 5 * time.Millisecond, 25 * time.Millisecond, time.Second} {
		for _, changes := range []int{20, 50, 100, 1000} {
			for _, limit := range []int{0, 20} {
				t.Run(fmt.Sprintf("%s away, %d changes a second, %d requests", away, changes, limit), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { canaryWhile(t, away, changes, limit) })
				})
			}
		}
	}
}

func canaryWhile(t *testing.T, away time.Duration, changes, limit int) {
	d := newDesk(t, nil)
	w := newFar(d.mem, away, limit)
	o := NewOutbox(w, nil, nil, nil)
	d.run(o.Run)
	s := New(Params{Prefix: "p/", Outbox: o})
	d.run(s.Run)
	b := &busy{s: s, names: 300, wanted: map[string]int{}}
	for range b.names {
		b.change()
	}
	c := NewCanaries(CanariesParams{Dir: "synced/", Writer: w})
	c.Add("p", s)
	d.run(c.Run)
	canary, err := d.mem.Connect().Watch(d.ctx, "synced/", d.mem.Position())
	must(t, err)
	defer canary.Close()
	began, asked := time.Now(), make(map[string]int)
	for name, n := range b.wanted {
		asked[name] = n
	}
	s.Complete()
	ctx, cancel := context.WithCancel(d.ctx)
	defer cancel()
	d.runIn(ctx, func(ctx context.Context) error { return b.keepOn(ctx, changes) })
	context.AfterFunc(ctx, canary.Close)
	batch, err := recvSome(canary)
	if err != nil {
		t.Fatalf("there is no canary: %v; %+v", err, s.Status())
	}
	t.Logf("after %s, with %d writes", time.Since(began), batch.At.Revision)
	past, err := d.mem.Recall(d.ctx, "p/", "", batch.At, b.names+1)
	must(t, err)
	for _, kv := range past.Items {
		name := string(follow.NameOf(kv.Key, "p/"))
		if is, err := strconv.Atoi(string(kv.Value)); err == nil && is >= asked[name] {
			delete(asked, name)
		}
	}
	if len(asked) > 0 {
		t.Errorf("the canary came before %d names: %v", len(asked), asked)
	}
	if err := s.WaitClean(ctx); err != nil {
		t.Errorf("who waits until everything is written waits for ever: %v", err)
	}
}

// recvSome returns the next batch with events.
func recvSome(st kvstore.Stream) (b kvstore.Batch, err error) {
	for len(b.Events) == 0 && err == nil {
		b, err = st.Recv()
	}
	return b, err
}
