package kvstore_test

import (
	"context"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
)

// counting counts the transactions of locks.
type counting struct {
	kvstore.Engine
	locks int
}

func (c *counting) Transact(ctx context.Context, t kvstore.Transaction) (kvstore.TxnResult, kvstore.Position, error) {
	if t.Op == "lock" {
		c.locks++
	}
	return c.Engine.Transact(ctx, t)
}

// TestLockChecksQuorumFirst: Lock proves the quorum unless it was proved recently, so that
// repeated locks need only one request each.
func TestLockChecksQuorumFirst(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		without bool
		want    int
	}{{false, 4}, {true, 3}} {
		m := memory.New()
		engine := &counting{Engine: m}
		w := kvstore.NewWriter(engine, kvstore.WriterOptions{NoQuorumCheck: c.without})
		w.Join(m.Position().ClusterID)
		for range 3 {
			l, err := w.Lock(t.Context(), "locks/l")
			if err != nil {
				t.Fatal(err)
			}
			l.Unlock()
			if !w.ProveQuorum() { // again, so that a slow machine does not matter
				t.Error("the lock proved no quorum")
			}
		}
		if engine.locks != c.want {
			t.Errorf("without the check %t: %d requests, want %d", c.without, engine.locks, c.want)
		}
	}
}
