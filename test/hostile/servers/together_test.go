package servers

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
)

// TestTogether: everything at once, with 256 MiB: hostile keys, hostile messages to all servers, and attacks on memory
// and places. The process lives, friendly clusters are fresh, and friendly clients get answers.
func TestTogether(t *testing.T) {
	w := newWorld(t)
	x, h := w.newXDSClients(), w.newHTTPClients()
	w.befriend("xDS asks", w.subscribes)
	keys, err := writeHostile(w.evil)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), *duration)
	defer cancel()
	w.now.Store(int32(harmless))
	_ = waiting.Sleep(ctx, *duration/10)
	var all sync.WaitGroup
	w.now.Store(int32(attacked))
	stale := 0
	all.Go(func() { // the friendly clusters are fresh all the time
		for waiting.Sleep(ctx, time.Second) == nil && w.agent.alive() {
			if err := w.fresh("c1", "c2"); err != nil && ctx.Err() == nil {
				if stale++; stale <= 3 {
					t.Logf("a friendly cluster: %v", err)
				}
			}
		}
	})
	for _, a := range attacks() {
		all.Go(func() {
			n := a.run(ctx, w)
			t.Logf("%s: %d times", a.name, n)
		})
	}
	for name, talk := range map[string]conversation{
		"DNS": w.hostileDNS, "xDS": x.hostile, "frames of xDS": w.frames(w.agent.xds, nil, grpcHeaders, grpcMessage), "HTTP": h.hostile,
	} {
		all.Go(func() {
			n := w.talkUntil(ctx, talk)
			t.Logf("%s: %d hostile messages", name, n)
		})
	}
	all.Wait()
	t.Logf("%d hostile keys; %s", keys, *duration)
	if stale > int(duration.Seconds())/10 {
		t.Errorf("a friendly cluster was not fresh %d times", stale)
	}
	w.judge(unlimited)
}

// talkUntil runs one client's conversations until the context ends.
func (w *world) talkUntil(ctx context.Context, talk conversation) (sent int) {
	for number := uint64(0); ctx.Err() == nil && w.agent.alive(); number++ {
		began := time.Now()
		sent += talk(ctx, randomOf(number))
		_ = waiting.Sleep(ctx, time.Since(began))
	}
	return sent
}
