package memory

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/kvtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// chaos makes one operation in ten fail before its execution, and one in ten after it. It
// delays writes, so that a lock is lost before some of them.
func chaos(_ context.Context, op, _ string) error {
	switch op {
	case "probe":
		return nil
	case "put":
		<-time.After(rand.N(5 * time.Millisecond)) //nolint:gosec // a test
	}
	switch boom := errors.New("chaos"); rand.IntN(10) { //nolint:gosec // a test
	case 0:
		return boom
	case 1:
		return Afterwards(boom)
	default:
		return nil
	}
}

// TestLocksInChaos: requests fail, leases end and streams break, and no increment
// under the lock is lost or made twice. In the end no lock is left behind.
func TestLocksInChaos(t *testing.T) {
	t.Parallel()
	m := New()
	before := m.Position()
	m.SetFault(chaos)
	ctx, cancel := context.WithCancel(waittest.Context(t))
	var running, working sync.WaitGroup
	var made atomic.Int64
	for i := range 8 {
		e := m.Connect()
		running.Go(func() { _ = e.Run(ctx, nil) })
		path := "locks/l"
		if i == 7 {
			path = "locks/l/other" // does not affect the others
		}
		working.Go(func() {
			for range 40 {
				l, err := e.Lock(ctx, path)
				if err != nil {
					continue
				}
				if path == "locks/l" && kvtest.Increment(ctx, e, l) == nil {
					made.Add(1)
				}
				l.Unlock()
			}
		})
	}
	stop := make(chan struct{})
	running.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
				m.Break(nil)
			}
			if i%3 == 0 {
				m.ExpireLeases()
			}
		}
	})
	working.Wait()
	close(stop)
	m.SetFault(nil)
	waittest.Until(t, "no key is left", func() bool {
		_, err := m.List(ctx, "locks/", func(kvstore.Page) error { return errors.New("there is one") })
		return err == nil
	})
	cancel()
	running.Wait()
	last := counted(t, m, before)
	if n := made.Load(); n == 0 || last < n {
		t.Errorf("%d increments have succeeded, the counter is %d", n, last)
	}
}

// counted checks that each change of the counter was by one, and returns the last value.
func counted(t *testing.T, m *Store, after kvstore.Position) (last int64) {
	t.Helper()
	st, err := m.Watch(waittest.Context(t), "counter", after, kvstore.OneKey())
	waittest.Must(t, err)
	defer st.Close()
	waittest.Must(t, st.RequestProgress())
	for {
		b, err := st.Recv()
		waittest.Must(t, err)
		if len(b.Events) == 0 {
			return last
		}
		for _, ev := range b.Events {
			n, err := strconv.ParseInt(string(ev.Value), 10, 64)
			if err != nil || n != last+1 {
				t.Fatalf("the counter is %q after %d", ev.Value, last)
			}
			last = n
		}
	}
}
