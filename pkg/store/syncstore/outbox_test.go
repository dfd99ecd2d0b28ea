package syncstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// errTooLarge is etcd's error for a transaction that is too large.
var errTooLarge = fmt.Errorf("etcdserver: request is too large: %w", kvstore.ErrInvalidRequest)

// TestRefusedWritesAreSplit: the good writes are acknowledged, for any number of bad ones among them, and the other
// Sync is not delayed.
func TestRefusedWritesAreSplit(t *testing.T) {
	t.Parallel()
	metrics, reg := NewMetrics(), prometheus.NewPedanticRegistry()
	reg.MustRegister(metrics)
	d := newDesk(t, metrics)
	o := NewOutbox(picky(d.mem), nil, metrics, nil)
	d.run(o.Run)
	bad, good := map[string]string{}, map[string]string{}
	syncs := map[string]*Sync{}
	for _, prefix := range []string{"cilium/state/bad/v1/c1/", "cilium/state/good/v1/c1/"} {
		s := New(Params{Prefix: prefix, Outbox: o, Cluster: "c1"})
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
		all := metrics.Written()
		if len(all) != 2 || all[0].Prefix != "cilium/state/bad/v1/c1/" || all[0].Cluster != "c1" || all[0].Failed != 100 || all[1].Failed != 0 || all[1].Wanted != 500 {
			return fmt.Errorf("%+v", all)
		}
		return nil
	})
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

// gatheredSync returns the series of Syncs, each with its labels.
func gatheredSync(t *testing.T, reg prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	must(t, err)
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

// TestTurns: a Sync with one change does not wait for the backlog of another. The change is written with the first
// transaction sent after it, once the transactions in progress are done.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		long, short := d.sync(Params{Prefix: "long/"}), d.sync(Params{Prefix: "short/"})
		for _, s := range []*Sync{long, short} {
			s.Complete()
			d.clean(s)
		}
		under := make(chan chan struct{}, 100) // transactions, each in progress until its channel is closed
		d.mem.SetFault(func(ctx context.Context, op, _ string) error {
			if op == "update" {
				goOn := make(chan struct{})
				under <- goOn
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
		if synctest.Wait(); len(under) != maxInFlight {
			t.Fatalf("%d maxInFlight are under way", len(under))
		}
		short.Put("a", []byte("1"))
		for range maxInFlight + 1 {
			close(<-under)
			synctest.Wait()
		}
		if kv, _, err := d.mem.Get(d.ctx, "short/a"); err != nil || kv == nil {
			t.Errorf("%v %v: the short one has to wait longer than for those under way", kv, err)
		}
		if st := long.Status(); st.Pending == 0 {
			t.Error("the short one came last")
		}
		d.mem.SetFault(nil)
		for len(under) > 0 {
			close(<-under)
		}
		d.clean(long)
	})
}

// TestLargeValuesShareNoTransaction: a transaction stays within its limit of bytes, unless a single value is larger
// than that.
func TestLargeValuesShareNoTransaction(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	s := New(Params{Prefix: "p/", Outbox: d.outbox})
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
	must(t, err)
	got := slices.Sorted(maps.Values(sizes))
	third := transactionBytes/3 - 100
	if diff := cmp.Diff([]int{2 * third, 3 * third, 3 * third, 2 * transactionBytes, 2 * transactionBytes}, got); diff != "" {
		t.Error(diff)
	}
	d.until("p/", want)
}

// TestTrouble: while nothing can be written, everything waits, which the status shows. The values wanted meanwhile are
// written in the end.
func TestTrouble(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	s := d.sync(Params{Prefix: "p/"})
	s.Complete()
	d.clean(s)
	d.mem.SetFault(func(_ context.Context, op, _ string) error {
		if op == "update" {
			return errors.New("there is no room")
		}
		return nil
	})
	want := map[string]string{}
	for i := range 3 * kvstore.MaxWrites {
		want[fmt.Sprint(i)] = "1"
		s.Put(fmt.Sprint(i), []byte("1"))
	}
	eventually(t, func() error {
		if st := s.Status(); st.Pending != len(want) || st.Failed != 0 || !strings.Contains(st.Err, "there is no room") {
			return fmt.Errorf("%+v", st)
		}
		return nil
	})
	s.Delete("0")
	delete(want, "0")
	d.mem.SetFault(nil)
	d.clean(s)
	d.until("p/", want)
	if st := s.Status(); st.Err != "" || st.Errors != 0 || st.Pending != 0 {
		t.Errorf("%+v", st)
	}
}
