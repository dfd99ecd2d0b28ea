package clustermesh

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// onAClock runs a test on a simulated clock, with a mesh of three clusters whose kvstores are in memory, and the intervals
// of production. Each has the services svc0 to svc119, and only c1 has svc120.
func onAClock(t *testing.T, change func(*Params), test func(t *testing.T, w *world, c1, c2, c3 *remote)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		servers := make(memory.Servers)
		w := newIdleWorld(t, nil, func(p *Params) {
			p.Engine, p.Poll, p.Timings = servers, time.Second, remotecluster.DefaultTimings()
			change(p)
		})
		var all [3]*remote
		for i, name := range []string{"c1", "c2", "c3"} {
			r := &remote{w: w, name: name, id: uint32(i + 1), memory: memory.New()}
			all[i], servers[r.endpoint()] = r, r.memory
			r.memory.SetProbeInterval(10 * time.Second)
			r.fill(0, 120)
			r.lives()
			r.join()
		}
		c1, c2, c3 := all[0], all[1], all[2]
		c1.object(120, 1)
		w.start()
		for _, r := range all {
			w.inState(r.name, remotecluster.Ready)
		}
		w.backendsAre(1, "c1 10.1.0.1, c2 10.2.0.1, c3 10.3.0.1")
		test(t, w, c1, c2, c3)
	})
}

func (r *remote) endpoint() string { return "http://" + r.name + ":2379" }

// lives begins to write the heartbeat of the cluster, until the test ends or stop is called.
func (r *remote) lives() {
	ctx, cancel := context.WithCancel(context.Background())
	r.mute = cancel
	r.w.t.Cleanup(cancel)
	go func() {
		for ctx.Err() == nil {
			r.put(wire.HeartbeatKey, []byte(time.Now().Format(time.RFC3339)))
			_ = waiting.Sleep(ctx, time.Minute)
		}
	}()
}

// goes makes the kvstore of the cluster fail.
func (r *remote) goes() {
	r.memory.SetFault(func(context.Context, string, string) error { return errors.New("connection refused") })
	r.memory.Break(nil)
}

// returns ends that.
func (r *remote) returns() { r.memory.SetFault(nil) }

// confirmedAfter waits until the services of the cluster are known to be up to date at a later time.
func (w *world) confirmedAfter(name string, at time.Time) {
	w.t.Helper()
	w.until(name+" to be confirmed", func() bool { return w.mustStatus(name).Families[wire.Services].Freshness.AsOf.After(at) })
}
