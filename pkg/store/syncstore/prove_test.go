package syncstore

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
)

// ahead is a writer whose first Head is in a history that ends right after it.
type ahead struct {
	*memory.Store
	asked atomic.Bool
	then  func() // called after the first Head
}

func (a *ahead) Head(ctx context.Context) (kvstore.Position, error) {
	at, err := a.Store.Head(ctx)
	if !a.asked.Swap(true) {
		at.Revision += 1000
		a.then()
	}
	return at, err
}

// TestACanaryWhoseHistoryEnds: between the response of the server and the proof, an emptier server replaces it. The
// canary is written nevertheless.
func TestACanaryWhoseHistoryEnds(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]struct {
		within time.Duration
		then   func(*memory.Store)
	}{
		"which a list shows": {time.Hour, func(m *memory.Store) {
			m.SetFault(func(_ context.Context, op, _ string) error {
				if op == "recall" {
					return kvstore.ErrCompacted
				}
				return nil
			})
			m.Break(nil)
		}},
		"which nothing shows": {10 * time.Millisecond, func(*memory.Store) {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, nil)
			w := &ahead{Store: d.mem, then: func() { ends.then(d.mem) }}
			o := NewOutbox(w, nil, nil, nil)
			d.run(o.Run)
			s := New(Params{Prefix: "p/", Outbox: o})
			s.reachWithin = ends.within
			d.run(s.Run)
			s.Put("a", []byte("1"))
			s.Complete()
			c := NewCanaries(CanariesParams{Dir: "synced/", Writer: d.mem})
			c.Add("p", s)
			d.run(c.Run)
			d.canary("p", 0)
		})
	}
}
