package syncstore

import (
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/base/guard"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
)

// TestAPanicKeepsNoLock: the status can still be read after a panic.
func TestAPanicKeepsNoLock(t *testing.T) {
	t.Parallel()
	own := memory.New()
	defer own.Close()
	s := New(Params{Prefix: "p/", Outbox: NewOutbox(own, nil, nil, nil)})
	if err := guard.Run(func() error { s.update(func(*ledger) { panic("a mistake in the code") }); return nil }); err == nil {
		t.Fatal("no error")
	}
	if !s.mu.TryLock() {
		t.Fatal("the lock is held")
	}
	s.mu.Unlock()
}
