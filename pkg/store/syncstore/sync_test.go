package syncstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
)

// TestSyncMachine: after random changes of the kvstore and random losses of the connection, the kvstore has the
// contents that several owners want.
func TestSyncMachine(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := newDesk(t, nil)
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
			p := Params{Prefix: o.prefix}
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
			o.s = New(p)
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
					err = memory.Afterwards(err)
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

// TestASharedPrefix: other clients' keys are neither changed nor kept in memory.
func TestASharedPrefix(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	d.mem.Set("p/other", "1")
	d.mem.Set("p/mine", "of an earlier process")
	s := d.sync(Params{Prefix: "p/", Shared: true})
	s.Put("mine", []byte("1"))
	s.Put("short", []byte("1"))
	s.Complete()
	d.clean(s)
	d.mem.Set("p/another", "1")
	d.mem.Set("p/mine", "changed")
	d.mem.Unset("p/other")
	d.until("p/", map[string]string{"mine": "1", "short": "1", "another": "1"})
	s.Delete("short")
	s.Delete("another") // a key of another client
	d.until("p/", map[string]string{"mine": "1", "another": "1"})
	d.mem.ExpireLeases()
	d.until("p/", map[string]string{"mine": "1", "another": "1"})
	d.clean(s)
	s.update(func(l *ledger) {
		if l.records.Len() != 1 || l.wanted != 1 {
			t.Errorf("%d names are known, %d wanted", l.records.Len(), l.wanted)
		}
	})
	d.mem.Break(nil) // the Sync resumes
	s.Put("more", []byte("1"))
	d.until("p/", map[string]string{"mine": "1", "another": "1", "more": "1"})
	d.stop()
	if err := s.Drain(context.Background()); err == nil {
		t.Error("drained through a closed connection")
	}
}

// TestReassert: a change without an event is detected.
func TestReassert(t *testing.T) {
	t.Parallel()
	for name, shared := range map[string]bool{"own prefix": false, "shared prefix": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, nil)
			s := d.sync(Params{Prefix: "p/", Shared: shared, Reassert: 10 * time.Millisecond})
			want := map[string]string{"a": "1", "b": "1"}
			for name, value := range want {
				s.Put(name, []byte(value))
			}
			s.Complete()
			d.clean(s)
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

// TestWaitCleanEndsWithItsContext: WaitClean waits until Complete is called.
func TestWaitCleanEndsWithItsContext(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	s := d.sync(Params{Prefix: "p/"})
	s.Put("a", []byte("1"))
	ctx, cancel := context.WithTimeout(d.ctx, 10*time.Millisecond)
	defer cancel()
	if err := s.WaitClean(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "p/") {
		t.Errorf("clean, although not all is given: %v", err)
	}
}

// TestDrain: Drain withdraws all keys of the owner, and removes them from memory.
func TestDrain(t *testing.T) {
	t.Parallel()
	for name, shared := range map[string]bool{"own prefix": false, "shared prefix": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, nil)
			d.mem.Set("p/other", "1")
			d.mem.Set("q", "1")
			ctx, cancel := context.WithCancel(d.ctx)
			s := New(Params{Prefix: "p/", Shared: shared, Outbox: d.outbox})
			d.runIn(ctx, s.Run)
			all := map[string]string{}
			for i := range kvstore.MaxWrites + 300 {
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
			before := d.mem.Position().Revision
			cancel()
			must(t, s.Drain(d.ctx))
			left, took := map[string]string{}, int64(1)
			if shared {
				left["other"], took = "1", 2
			}
			d.until("p/", left)
			if rev := d.mem.Position().Revision; rev != before+took {
				t.Errorf("it took %d transactions, not %d", rev-before, took)
			}
			if st := s.Status(); st != (Status{}) {
				t.Errorf("%+v", st)
			}
			d.until("q", map[string]string{"": "1"})
		})
	}
}
