package kvstore_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestDurableOfAnyEngine: with any engine the leases continue when a session ends, and end with their server.
func TestDurableOfAnyEngine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, leases, unreachable := memory.New(), kvstore.NewLeases(), errors.New("unreachable")
		attempts := 0
		d := kvstore.NewDurable(func(_ context.Context, attempt int) (kvstore.Session, error) {
			if attempts++; attempt%2 == 0 {
				return nil, unreachable
			}
			return m.ConnectWith(leases), nil
		}, kvstore.DurableOptions{Leases: leases, Wait: time.Second})
		var lost []string
		d.OnLeaseExpired("", func(keys []string) { lost = append(lost, keys...) })
		ended := make(chan error, 1)
		go func() { ended <- d.Run(t.Context()) }()
		put := func(key string) {
			t.Helper()
			waittest.Must(t, d.WaitConnected(t.Context()))
			if _, err := d.Put(t.Context(), key, nil, kvstore.Leased()); err != nil {
				t.Fatal(err)
			}
		}
		put("a")
		m.SetFault(func(_ context.Context, op, _ string) error {
			if op == "probe" {
				return unreachable
			}
			return nil
		})
		waittest.Must(t, d.WaitDisconnected(t.Context()))
		m.SetFault(nil)
		put("b")
		if len(lost) != 0 {
			t.Errorf("the same server is there, and %q are said to be lost", lost)
		}
		m.Replace()
		if _, err := d.Head(t.Context()); !errors.Is(err, kvstore.ErrServerChanged) {
			t.Errorf("another server answers, and the error is %v", err)
		}
		waittest.Must(t, d.WaitDisconnected(t.Context()))
		<-time.After(time.Minute)
		put("c")
		if diff := cmp.Diff([]string{"a", "b"}, lost); diff != "" {
			t.Error(diff)
		}
		d.Close()
		if err := <-ended; !errors.Is(err, kvstore.ErrClosed) || attempts < 4 {
			t.Errorf("it ended with %v after %d attempts", err, attempts)
		}
	})
}
