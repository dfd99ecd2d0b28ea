package syncstore

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// tester is a test, or a run of a property test.
type tester interface {
	waittest.T
	Cleanup(func())
}

// desk is an outbox on a kvstore in memory, and everything that runs with it.
type desk struct {
	t      waittest.T
	mem    *memory.Store
	outbox *Outbox
	ctx    context.Context //nolint:containedctx // of one test
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

func newDesk(t tester, metrics *Metrics) *desk {
	d := &desk{t: t, mem: memory.New()}
	d.mem.SetProbeInterval(time.Millisecond)
	d.outbox = NewOutbox(d.mem, nil, metrics, nil)
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.run(func(ctx context.Context) error { return d.mem.Run(ctx, nil) })
	d.run(d.outbox.Run)
	t.Cleanup(d.stop)
	return d
}

func (d *desk) run(f func(context.Context) error) { d.runIn(d.ctx, f) }

func (d *desk) runIn(ctx context.Context, f func(context.Context) error) {
	d.ended.Go(func() { _ = f(ctx) }) // ends with the test
}

func (d *desk) stop() {
	d.cancel()
	d.ended.Wait()
	d.mem.Close()
}

func (d *desk) sync(p Params) *Sync {
	p.Outbox = d.outbox
	s := New(p)
	d.run(s.Run)
	return s
}

// through starts a Sync of the prefix p/ with an outbox of its own, on another writer.
func (d *desk) through(w kvstore.Writer, p Params) *Sync {
	o := NewOutbox(w, nil, nil, nil)
	d.run(o.Run)
	p.Prefix, p.Outbox = "p/", o
	s := New(p)
	d.run(s.Run)
	return s
}

// refusing is a kvstore that refuses transactions with certain writes.
type refusing struct {
	*memory.Store
	why func(kvstore.Write) error // returns nil for a write that is accepted
}

func (r *refusing) Update(ctx context.Context, writes []kvstore.Write, opts ...kvstore.Option) (kvstore.Result, error) {
	for _, w := range writes {
		if err := r.why(w); err != nil {
			return kvstore.Result{}, &kvstore.KeyError{Op: "update", Key: w.Key, Err: err}
		}
	}
	return r.Store.Update(ctx, writes, opts...)
}

// picky returns a kvstore that refuses the value "bad".
func picky(m *memory.Store) *refusing {
	return &refusing{m, func(w kvstore.Write) error {
		if string(w.Value) == "bad" {
			return errTooLarge
		}
		return nil
	}}
}

func (d *desk) clean(s *Sync) {
	d.t.Helper()
	if err := s.WaitClean(d.ctx); err != nil {
		d.t.Fatalf("%v", err)
	}
}

// has returns the keys below a prefix without the prefix, or one key, with their values.
func (d *desk) has(prefix string) map[string]string {
	all := map[string]string{}
	var which []kvstore.ReadOption
	if !strings.HasSuffix(prefix, "/") {
		which = append(which, kvstore.OneKey())
	}
	_, err := d.mem.Connect().List(context.Background(), prefix, func(p kvstore.Page) error {
		for _, kv := range p.Items {
			all[strings.TrimPrefix(string(kv.Key), prefix)] = string(kv.Value)
		}
		return nil
	}, which...)
	if err != nil {
		d.t.Fatalf("list: %v", err)
	}
	return all
}

// until waits until exactly these keys are below the prefix.
func (d *desk) until(prefix string, want map[string]string) {
	d.t.Helper()
	waittest.Try(d.t, prefix, func() error {
		if got := d.has(prefix); !maps.Equal(got, want) {
			return errors.New("(-want +got)\n" + cmp.Diff(want, got))
		}
		return nil
	})
}
