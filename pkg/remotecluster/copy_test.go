package remotecluster

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// copying is a source whose entries have to be written elsewhere, too.
type copying struct {
	Source
	pending atomic.Int64
	asOf    atomic.Pointer[time.Time] // until when the copy is known to be right; nil: as the source is
}

// Status is that of a copy that may be behind.
func (c *copying) Status() store.Status {
	st := c.Source.Status()
	st.Pending = int(c.pending.Load())
	if c.asOf.Load() != nil {
		st.AsOf = *c.asOf.Load()
	} else if st.Pending > 0 {
		st.Synced = false
	}
	return st
}

// TestACopySaysHowFarItIs: at first, and when it falls behind later.
func TestACopySaysHowFarItIs(t *testing.T) {
	t.Parallel()
	var c *copying
	b := newBench(t, func(p *Params) {
		c = &copying{Source: consumerOf(p).sources[1]}
		c.pending.Store(1)
		consumerOf(p).sources[1] = c
	})
	b.configure(plain(2))
	b.put(wire.IPs, false, "10.0.0.1", "x")
	b.put(wire.IPs, false, "10.0.0.2", "x")
	b.run()
	b.eventually("the first copy to be told", func(st Status) bool {
		return st.State == Syncing && st.Message == "copying ips: 1 of 2 so far"
	})
	c.pending.Store(0)
	b.inState(Ready)
	long := time.Now().Add(-time.Hour)
	c.asOf.Store(&long)
	c.pending.Store(7)
	st := b.inState(Degraded)
	if want := "the copy of its ips is behind since "; !strings.HasPrefix(st.Message, want) || !strings.HasSuffix(st.Message, "7 are still to be written to our own kvstore") {
		t.Errorf("%q", st.Message)
	}
	now := time.Now()
	c.asOf.Store(&now)
	b.inState(Ready) // what is under way is no trouble
}
