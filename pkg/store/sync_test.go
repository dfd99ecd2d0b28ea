package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// desk is an outbox on a kvstore in memory, with whatever runs on it.
type desk struct {
	t      fataler
	mem    *kvstore.Memory
	outbox *Outbox
	ctx    context.Context //nolint:containedctx // of one test
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

func newDesk(t fataler, metrics *SyncMetrics) *desk {
	d := &desk{t: t, mem: kvstore.NewMemory()}
	d.mem.SetProbeInterval(time.Millisecond)
	d.outbox = NewOutbox(d.mem, nil, metrics, nil)
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.run(func(ctx context.Context) error { return d.mem.Run(ctx, nil) })
	d.run(d.outbox.Run)
	return d
}

func (d *desk) run(f func(context.Context) error) { d.runIn(d.ctx, f) }

func (d *desk) runIn(ctx context.Context, f func(context.Context) error) {
	d.ended.Go(func() { _ = f(ctx) }) // it ends with the test
}

func (d *desk) stop() {
	d.cancel()
	d.ended.Wait()
	d.mem.Close()
}

func (d *desk) sync(p SyncParams) *Sync {
	p.Outbox = d.outbox
	s := NewSync(p)
	d.run(s.Run)
	return s
}

func (d *desk) clean(s *Sync) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.ctx, patience)
	defer cancel()
	if err := s.WaitClean(ctx); err != nil {
		d.t.Fatalf("%v", err)
	}
}

// has returns what is below a prefix.
func (d *desk) has(prefix string) map[string]string {
	all := map[string]string{}
	_, err := d.mem.Connect().List(context.Background(), prefix, func(p kvstore.Page) error {
		for _, kv := range p.Items {
			all[strings.TrimPrefix(string(kv.Key), prefix)] = string(kv.Value)
		}
		return nil
	})
	if err != nil {
		d.t.Fatalf("list: %v", err)
	}
	return all
}

// until waits until these are below the prefix.
func (d *desk) until(prefix string, want map[string]string) {
	d.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		got := d.has(prefix)
		if maps.Equal(got, want) {
			return
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("never (-want +got):\n%s", cmp.Diff(want, got))
		}
		<-time.After(time.Millisecond)
	}
}

// TestSyncMachine: whatever happens to the kvstore and the connection, it holds
// what several owners want.
func TestSyncMachine(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := newDesk(t, nil)
		defer d.stop()
		d.mem.SetPageSize(rapid.IntRange(1, 4).Draw(t, "page"))
		type owner struct {
			prefix string
			s      *Sync
			want   map[string]string
			mu     sync.Mutex // guards want
		}
		var owners []*owner
		for i := range 3 {
			o := &owner{prefix: fmt.Sprint("p", i, "/"), want: map[string]string{}}
			p := SyncParams{Prefix: o.prefix}
			if i > 0 {
				p.Again = func(names []string) {
					o.mu.Lock()
					defer o.mu.Unlock()
					for _, name := range names {
						if value, wanted := o.want[name]; wanted {
							o.s.Put(name, []byte(value))
						}
					}
				}
			}
			p.Outbox = d.outbox
			o.s = NewSync(p)
			d.run(o.s.Run)
			o.s.Complete()
			owners = append(owners, o)
		}
		some := func(t *rapid.T) (*owner, string) {
			return rapid.SampledFrom(owners).Draw(t, "owner"), rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "name")
		}
		values := rapid.SampledFrom([]string{"1", "2", "3"})
		rest := func() {
			for _, o := range owners {
				d.clean(o.s)
				d.until(o.prefix, o.want)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				o, name := some(t)
				o.mu.Lock()
				defer o.mu.Unlock()
				o.want[name] = values.Draw(t, "value")
				o.s.Put(name, []byte(o.want[name]))
			},
			"delete": func(t *rapid.T) {
				o, name := some(t)
				o.mu.Lock()
				defer o.mu.Unlock()
				delete(o.want, name)
				o.s.Delete(name)
			},
			"somebody else puts": func(t *rapid.T) {
				o, name := some(t)
				d.mem.Set(o.prefix+name, values.Draw(t, "value"))
			},
			"somebody else deletes": func(t *rapid.T) {
				o, name := some(t)
				d.mem.Unset(o.prefix + name)
			},
			"leases end": func(*rapid.T) { d.mem.ExpireLeases() },
			"break":      func(*rapid.T) { d.mem.Break(nil) },
			"compact":    func(*rapid.T) { d.mem.Compact() },
			"trouble": func(t *rapid.T) {
				err := errors.New("lost")
				if rapid.Bool().Draw(t, "afterwards") {
					err = kvstore.Afterwards(err)
				}
				var mu sync.Mutex
				left := rapid.IntRange(1, 3).Draw(t, "times")
				d.mem.SetFault(func(_ context.Context, op, _ string) error {
					mu.Lock()
					defer mu.Unlock()
					if left--; left < 0 || op != "update" {
						return nil
					}
					return err
				})
			},
			"at rest": func(*rapid.T) { rest() },
		})
		rest()
	})
}

// TestASharedPrefix: others' keys are neither touched nor remembered.
func TestASharedPrefix(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	defer d.stop()
	d.mem.Set("p/other", "1")
	d.mem.Set("p/mine", "of an earlier process")
	s := d.sync(SyncParams{Prefix: "p/", Shared: true})
	s.Put("mine", []byte("1"))
	s.Put("short", []byte("1"))
	s.Complete()
	d.clean(s)
	d.mem.Set("p/another", "1")
	d.mem.Set("p/mine", "changed")
	d.mem.Unset("p/other")
	d.until("p/", map[string]string{"mine": "1", "short": "1", "another": "1"})
	s.Delete("short")
	s.Delete("another") // it is not ours
	d.until("p/", map[string]string{"mine": "1", "another": "1"})
	d.mem.ExpireLeases()
	d.until("p/", map[string]string{"mine": "1", "another": "1"})
	d.clean(s)
	if n := s.ledger.records.n; n != 1 || s.Status().Wanted != 1 {
		t.Errorf("%d names are known, status %+v", n, s.Status())
	}
	d.mem.Break(nil) // it resumes
	s.Put("more", []byte("1"))
	d.until("p/", map[string]string{"mine": "1", "another": "1", "more": "1"})
	d.stop()
	if err := s.Drain(context.Background()); err == nil {
		t.Error("drained through a closed connection")
	}
}

// TestReassert: a change of which nobody hears is found out.
func TestReassert(t *testing.T) {
	t.Parallel()
	for name, shared := range map[string]bool{"own prefix": false, "shared prefix": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, nil)
			defer d.stop()
			s := d.sync(SyncParams{Prefix: "p/", Shared: shared, Reassert: 10 * time.Millisecond})
			want := map[string]string{"a": "1", "b": "1"}
			for name, value := range want {
				s.Put(name, []byte(value))
			}
			s.Complete()
			d.clean(s)
			s.do(func(l *ledger) { // as if an event had told so
				p, _ := l.records.findText("a")
				l.isThere(p, 1, l.records.at(p).hash, ownLease)
			})
			deaf := make(chan struct{})
			d.mem.SetFault(func(ctx context.Context, op, _ string) error {
				if op != "recv" {
					return nil
				}
				select {
				case <-deaf:
				case <-ctx.Done():
				}
				return nil
			})
			d.mem.Unset("p/a")
			d.until("p/", want)
			close(deaf)
		})
	}
}

// TestBeginningAnew: what is not given again goes when all is given, and not
// before.
func TestBeginningAnew(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	defer d.stop()
	s := d.sync(SyncParams{Prefix: "p/"})
	s.Put("a", []byte("1"))
	s.Put("b", []byte("1"))
	s.Complete()
	d.clean(s)
	s.Incomplete()
	s.Put("b", []byte("2"))
	d.mem.Unset("p/a")
	d.until("p/", map[string]string{"a": "1", "b": "2"})
	if st := s.Status(); st.Synced {
		t.Errorf("%+v", st)
	}
	ctx, cancel := context.WithTimeout(d.ctx, 10*time.Millisecond)
	defer cancel()
	if err := s.WaitClean(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "p/") {
		t.Errorf("clean, although not all is given: %v", err)
	}
	s.Complete()
	d.until("p/", map[string]string{"b": "2"})
	d.clean(s)
}

// TestDrainAndForget: the one withdraws, the other does not, and both forget.
func TestDrainAndForget(t *testing.T) {
	t.Parallel()
	for name, shared := range map[string]bool{"own prefix": false, "shared prefix": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, nil)
			defer d.stop()
			d.mem.Set("p/other", "1")
			d.mem.Set("q", "1")
			ctx, cancel := context.WithCancel(d.ctx)
			s := NewSync(SyncParams{Prefix: "p/", Shared: shared, Outbox: d.outbox})
			d.runIn(ctx, s.Run)
			all := map[string]string{}
			for i := range 300 {
				name := fmt.Sprint(i)
				s.Put(name, []byte("1"))
				all[name] = "1"
			}
			if shared {
				all["other"] = "1"
			}
			s.Complete()
			d.clean(s)
			d.until("p/", all)
			cancel()
			s.Forget()
			if st := s.Status(); st != (SyncStatus{}) {
				t.Errorf("%+v", st)
			}
			d.until("p/", all)
			ctx, cancel = context.WithCancel(d.ctx)
			d.runIn(ctx, s.Run)
			for name := range all {
				if name != "other" {
					s.Put(name, []byte("1"))
				}
			}
			s.Complete()
			d.clean(s)
			before := d.mem.Position().Revision
			cancel()
			if err := s.Drain(d.ctx); err != nil {
				t.Fatal(err)
			}
			left, took := map[string]string{}, int64(1)
			if shared {
				left["other"], took = "1", 3
			}
			d.until("p/", left)
			if rev := d.mem.Position().Revision; rev != before+took {
				t.Errorf("it took %d transactions, not %d", rev-before, took)
			}
			if st := s.Status(); st != (SyncStatus{}) {
				t.Errorf("%+v", st)
			}
			d.until("q", map[string]string{"": "1"})
		})
	}
}

// errTooLarge is what etcd says of a transaction that is.
var errTooLarge = status.Error(codes.InvalidArgument, "etcdserver: request is too large")

// TestRefusedWritesAreSplit: the good ones are made, however many bad ones are
// among them, and the other Sync is not held up.
func TestRefusedWritesAreSplit(t *testing.T) {
	t.Parallel()
	metrics, reg := NewSyncMetrics(), prometheus.NewPedanticRegistry()
	reg.MustRegister(metrics)
	d := newDesk(t, metrics)
	defer d.stop()
	w := &picky{Memory: d.mem}
	o := NewOutbox(w, nil, metrics, nil)
	d.run(o.Run)
	bad, good := map[string]string{}, map[string]string{}
	syncs := map[string]*Sync{}
	for _, prefix := range []string{"cilium/state/bad/v1/c1/", "cilium/state/good/v1/c1/"} {
		s := NewSync(SyncParams{Prefix: prefix, Outbox: o, Cluster: "c1"})
		d.run(s.Run)
		syncs[prefix] = s
		for i := range 500 {
			name, value := fmt.Sprintf("%03d", i), "fine"
			if strings.Contains(prefix, "bad") && i%5 == 0 {
				value = "bad"
			}
			s.Put(name, []byte(value))
			if strings.Contains(prefix, "good") {
				good[name] = value
			} else if value == "fine" {
				bad[name] = value
			}
		}
		s.Complete()
	}
	d.clean(syncs["cilium/state/good/v1/c1/"])
	d.until("cilium/state/good/v1/c1/", good)
	d.until("cilium/state/bad/v1/c1/", bad)
	s := syncs["cilium/state/bad/v1/c1/"]
	eventually(t, func() error {
		if st := s.Status(); st.Failed != 100 || st.Pending != 100 || st.Errors < 100 || !strings.Contains(st.Err, "too large") {
			return fmt.Errorf("%+v", st)
		}
		return nil
	})
	series := gatheredSync(t, reg)
	for name, want := range map[string]float64{
		"sync_queue_size bad/v1 c1": 100, "sync_queue_size good/v1 c1": 0, "sync_errors_total good/v1 c1": 0,
		"initial_sync_completed write bad/v1 c1": 0, "initial_sync_completed write good/v1 c1": 1,
	} {
		if got, has := series[name]; !has || got != want {
			t.Errorf("%s is %v (%t), want %v", name, got, has, want)
		}
	}
	if series["sync_errors_total bad/v1 c1"] < 100 {
		t.Errorf("%v", series)
	}
	for i := 0; i < 500; i += 5 {
		name := fmt.Sprintf("%03d", i)
		s.Put(name, []byte("fine"))
		bad[name] = "fine"
	}
	d.clean(s)
	d.until("cilium/state/bad/v1/c1/", bad)
	d.stop()
	if series := gatheredSync(t, reg); len(series) != 0 {
		t.Errorf("left of Syncs that are gone: %v", series)
	}
}

// picky refuses transactions with a bad value.
type picky struct{ *kvstore.Memory }

func (p *picky) Update(ctx context.Context, writes []kvstore.Write, opts ...kvstore.Option) (kvstore.Result, error) {
	for _, w := range writes {
		if string(w.Value) == "bad" {
			return kvstore.Result{}, &kvstore.KeyError{Op: "update", Key: w.Key, Err: errTooLarge}
		}
	}
	return p.Memory.Update(ctx, writes, opts...)
}

// gatheredSync are the series of Syncs, each with its labels.
func gatheredSync(t *testing.T, reg prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := strings.TrimPrefix(f.GetName(), "mesh_agent_kvstore_")
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			series[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return series
}

// TestTurns: a Sync with one change does not wait for the backlog of another.
func TestTurns(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	defer d.stop()
	long, short := d.sync(SyncParams{Prefix: "long/"}), d.sync(SyncParams{Prefix: "short/"})
	for _, s := range []*Sync{long, short} {
		s.Complete()
		d.clean(s)
	}
	goOn := make(chan struct{})
	d.mem.SetFault(func(ctx context.Context, op, _ string) error {
		if op == "update" {
			select {
			case <-goOn:
			case <-ctx.Done():
			}
		}
		return nil
	})
	for i := range 20 * kvstore.MaxWrites {
		long.Put(fmt.Sprint(i), []byte("1"))
	}
	short.Put("a", []byte("1"))
	close(goOn)
	d.clean(short)
	if st := long.Status(); st.Pending == 0 {
		t.Error("the short one came last")
	}
	d.clean(long)
	kv, _, err := d.mem.Get(d.ctx, "short/a")
	if err != nil || kv == nil {
		t.Fatal(kv, err)
	}
	// Those under way, and as many that overtook its own, may be before it.
	if kv.ModRevision > 1+2*transactions+1 {
		t.Errorf("it was written by transaction %d", kv.ModRevision-1)
	}
}

// TestLargeValuesShareNoTransaction: a transaction stays within its bytes, but for
// a value that is larger than that by itself.
func TestLargeValuesShareNoTransaction(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	defer d.stop()
	s := NewSync(SyncParams{Prefix: "p/", Outbox: d.outbox})
	want := map[string]string{}
	for i := range 10 {
		value := strings.Repeat("x", transactionBytes/3-100)
		if i%4 == 3 {
			value = strings.Repeat("x", 2*transactionBytes)
		}
		want[fmt.Sprint(i)] = value
		s.Put(fmt.Sprint(i), []byte(value))
	}
	s.Complete()
	d.run(s.Run)
	d.clean(s)
	sizes := map[int64]int{}
	_, err := d.mem.List(d.ctx, "p/", func(p kvstore.Page) error {
		for _, kv := range p.Items {
			sizes[kv.ModRevision] += len(kv.Value)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got := slices.Sorted(maps.Values(sizes))
	third := transactionBytes/3 - 100
	if diff := cmp.Diff([]int{2 * third, 3 * third, 3 * third, 2 * transactionBytes, 2 * transactionBytes}, got); diff != "" {
		t.Error(diff)
	}
	d.until("p/", want)
}
