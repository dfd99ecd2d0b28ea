package syncstore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
)

// BenchmarkCanary is how long a canary takes while everything changes without end, from
// Complete on, with a server that is far away or takes few requests. The floor is a bare
// writer of the same names with the same server, as many in a transaction as there may
// be and one after another, and then of a canary.
func BenchmarkCanary(b *testing.B) {
	const names = 1000
	for _, is := range []struct {
		away           time.Duration // each way
		changes, limit int           // a second
	}{{5 * time.Millisecond, 50, 0}, {25 * time.Millisecond, 20, 0}, {5 * time.Millisecond, 1000, 0}, {5 * time.Millisecond, 100, 20}} {
		b.Run(fmt.Sprintf("%s/%d-changes/%d-requests", 2*is.away, is.changes, is.limit), func(b *testing.B) {
			var bare, took time.Duration
			for b.Loop() {
				bare += bareCanary(b, newFar(memory.New(), is.away, is.limit), names)
				took += busyCanary(b, names, func(mem *memory.Store) *far { return newFar(mem, is.away, is.limit) }, is.changes)
			}
			b.ReportMetric(bare.Seconds()/float64(b.N), "s/bare")
			b.ReportMetric(took.Seconds()/float64(b.N), "s/canary")
			b.ReportMetric(float64(took)/float64(bare), "of-bare")
		})
	}
}

func bareCanary(b *testing.B, w *far, names int) time.Duration {
	b.Helper()
	defer w.Close()
	start := time.Now()
	for from := 0; from < names; from += kvstore.MaxWrites {
		var writes []kvstore.Write
		for i := from; i < min(from+kvstore.MaxWrites, names); i++ {
			writes = append(writes, kvstore.Write{Key: fmt.Sprint("p/n", i), Value: []byte("1")})
		}
		if _, err := w.Update(b.Context(), writes, kvstore.Leased()); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := w.Put(b.Context(), "synced/p", nil, kvstore.Leased()); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

func busyCanary(b *testing.B, names int, server func(*memory.Store) *far, changes int) time.Duration {
	b.Helper()
	d := newDesk(b, nil)
	defer d.stop()
	w := server(d.mem)
	o := NewOutbox(w, nil, nil, nil)
	d.run(o.Run)
	s := New(Params{Prefix: "p/", Outbox: o})
	owner := &busy{s: s, names: names, wanted: map[string]int{}}
	for range names {
		owner.change()
	}
	c := NewCanaries(CanariesParams{Dir: "synced/", Writer: w})
	c.Add("p", s)
	canary, err := d.mem.Connect().Watch(d.ctx, "synced/", d.mem.Position())
	if err != nil {
		b.Fatal(err)
	}
	defer canary.Close()
	start := time.Now()
	s.Complete()
	d.run(s.Run)
	d.run(c.Run)
	ctx, cancel := context.WithTimeout(d.ctx, time.Minute)
	defer cancel()
	d.runIn(ctx, func(ctx context.Context) error { return owner.keepOn(ctx, changes) })
	context.AfterFunc(ctx, canary.Close)
	if _, err := recvSome(canary); err != nil {
		b.Fatalf("there is no canary: %v", err)
	}
	return time.Since(start)
}
