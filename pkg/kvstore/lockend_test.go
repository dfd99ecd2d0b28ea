package kvstore_test

import (
	"context"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
)

// revoking is an engine that calls a function before it revokes a lease.
type revoking struct {
	kvstore.Engine
	before func()
}

func (r revoking) Revoke(ctx context.Context, id int64) error {
	r.before()
	return r.Engine.Revoke(ctx, id)
}

// TestLocksAreLostBeforeOthersCanHaveThem: at the end of a session the holders of its locks are
// notified before the leases are revoked, because that may take a long time.
func TestLocksAreLostBeforeOthersCanHaveThem(t *testing.T) {
	t.Parallel()
	m := memory.New()
	lost, revoked := func() bool { return false }, 0
	w := kvstore.NewWriter(revoking{m, func() {
		revoked++
		if !lost() {
			t.Error("the lock is revoked, and its holder does not know")
		}
	}}, kvstore.WriterOptions{})
	w.Join(m.Position().ClusterID)
	lock, err := w.Lock(t.Context(), "locks/l")
	if err != nil {
		t.Fatal(err)
	}
	lost = func() bool {
		select {
		case <-lock.Lost():
			return true
		default:
			return false
		}
	}
	if lost() {
		t.Error("the lock is lost while it is held")
	}
	w.Release(t.Context())
	var s kvstore.Status
	if w.Count(&s); revoked != 1 || !lost() || s.Locks != 0 {
		t.Errorf("%d leases were revoked, lost %t, %d locks are held", revoked, lost(), s.Locks)
	}
	lock.Unlock()
}
