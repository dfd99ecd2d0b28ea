package kvstore

import (
	"context"
	"testing"
)

// revoking does something before a lease is revoked.
type revoking struct {
	Engine
	before func()
}

func (r revoking) Revoke(ctx context.Context, id int64) error {
	r.before()
	return r.Engine.Revoke(ctx, id)
}

// TestLocksAreLostBeforeOthersCanHaveThem: at the end of a session its holders are told
// before the leases are revoked, which may take long.
func TestLocksAreLostBeforeOthersCanHaveThem(t *testing.T) {
	t.Parallel()
	m := NewMemory()
	lost, revoked := func() bool { return false }, 0
	w := newWriting(revoking{m, func() {
		revoked++
		if !lost() {
			t.Error("the lock is revoked, and its holder does not know")
		}
	}}, nil, m.options)
	w.begin(m.Position().ClusterID)
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
	w.end(t.Context())
	if n := w.held.number(); revoked != 1 || !lost() || n != 0 {
		t.Errorf("%d leases were revoked, lost %t, %d locks are held", revoked, lost(), n)
	}
	lock.Unlock()
}
