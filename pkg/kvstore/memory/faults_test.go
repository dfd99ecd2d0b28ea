package memory

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/kvtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestLockWithFaults: the lock is free after a failure of any step, before or after its
// execution.
func TestLockWithFaults(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for step := 1; step <= 3; step++ {
		for _, after := range []bool{false, true} {
			m := New()
			done := make(chan error, 1)
			ctx, cancel := context.WithCancel(t.Context())
			go func() { done <- m.Run(ctx, nil) }()
			var mu sync.Mutex
			n := 0
			m.SetFault(func(_ context.Context, op, _ string) error {
				if op != "lock" && op != "unlock" {
					return nil
				}
				mu.Lock()
				defer mu.Unlock()
				switch n++; {
				case n != step:
					return nil
				case after:
					return Afterwards(boom)
				default:
					return boom
				}
			})
			l, err := m.Lock(ctx, "l")
			if (err == nil) != (step == 3) {
				t.Errorf("step %d: %v", step, err)
			}
			if err == nil {
				l.Unlock()
			}
			waittest.Until(t, fmt.Sprintf("step %d, afterwards %t: no key is left", step, after), func() bool {
				_, err := m.List(ctx, "l/", func(kvstore.Page) error { return boom })
				return err == nil
			})
			cancel()
			<-done
			m.Close()
		}
	}
}

// TestAStrayWriteArrives: a write whose client has ended is executed, unless the server was replaced.
func TestAStrayWriteArrives(t *testing.T) {
	t.Parallel()
	for _, replaced := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			m, boom, arrives, executed := New(), errors.New("boom"), make(chan struct{}), false
			other := m.Connect()
			m.SetFault(func(_ context.Context, op, _ string) error {
				if op == "put" {
					return Stray(arrives, func() { executed = true }, boom)
				}
				return nil
			})
			kvtest.WantErr(t, second(other.Put(t.Context(), "k", []byte("1"))), boom)
			other.Close()
			if m.Has("k") {
				t.Error("the write was executed at once")
			}
			if replaced {
				m.Replace()
			}
			close(arrives)
			synctest.Wait()
			if m.Has("k") == replaced || executed == replaced {
				t.Errorf("another server: %t, executed: %t (%t)", replaced, m.Has("k"), executed)
			}
			m.Close()
		})
	}
}

func TestMemoryFailsAfterwards(t *testing.T) {
	t.Parallel()
	ctx, boom := t.Context(), errors.New("boom")
	for _, c := range []struct {
		op    string
		write func(m *Store) error
		want  string // the value afterwards
	}{
		{"put", func(m *Store) error { return second(m.Put(ctx, "d/k", []byte("new"))) }, "new"},
		{"delete", func(m *Store) error { return second(m.Delete(ctx, "d/k")) }, ""},
		{"delete prefix", func(m *Store) error { return second(m.DeletePrefix(ctx, "d/")) }, ""},
	} {
		for _, after := range []bool{false, true} {
			m := New()
			m.Set("d/k", "old")
			m.SetFault(func(_ context.Context, op, _ string) error {
				switch {
				case op != c.op:
					return nil
				case after:
					return Afterwards(boom)
				default:
					return boom
				}
			})
			kvtest.WantErr(t, c.write(m), boom)
			kv, _, err := m.Get(ctx, "d/k")
			got, want := "", "old"
			if kv != nil {
				got = string(kv.Value)
			}
			if after {
				want = c.want
			}
			if err != nil || got != want {
				t.Errorf("%s, afterwards %t: the value is %q, want %q; %v", c.op, after, got, want, err)
			}
		}
	}
}
