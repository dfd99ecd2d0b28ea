package clustermesh

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
)

// TestOneBackoffForAll: a server that refuses does not get more attempts because many clusters need it. All of them are
// connected soon after it accepts.
func TestOneBackoffForAll(t *testing.T) {
	inBasin(t, func(t *testing.T, b *basin) {
		b.refuse = errors.New("refused")
		const n, away = 254, 5 * time.Minute
		own := remotecluster.DefaultTimings()
		var back [n]time.Duration
		start := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var g errgroup.Group
		for i := range n {
			g.Go(func() error {
				pause := backoff.NewExponentialBackOff()
				pause.InitialInterval, pause.MaxInterval = own.RetryMin, own.RetryMax
				for {
					h, err := b.join(ctx, fmt.Sprint("c", i), content(1))
					if err == nil {
						back[i] = time.Since(start) - away
						<-ctx.Done()
						h.Close()
						return nil
					}
					<-time.After(pause.NextBackOff())
				}
			})
		}
		<-time.After(away)
		b.mu.Lock()
		made := len(b.attempts)
		b.refuse = nil
		b.mu.Unlock()
		if atLeast, atMost := int(away/own.RetryMax), int(away/(own.RetryMax/2))+10; made < atLeast || made > atMost {
			t.Errorf("%d attempts in %s, want %d to %d", made, away, atLeast, atMost)
		}
		<-time.After(time.Minute)
		b.holds(t, 1, n, 1)
		cancel()
		_ = g.Wait()
		if latest := slices.Max(back[:]); latest > 10*time.Second {
			t.Errorf("the last one is back after %s", latest)
		}
	})
}

// TestThePauseIsShortAgainAfterASync: the pause is reset after a sync, not after each connection.
func TestThePauseIsShortAgainAfterASync(t *testing.T) {
	inBasin(t, func(t *testing.T, b *basin) {
		lose := func(h *handle) {
			b.mem.Replace()
			_ = h.Run(t.Context(), func(kvstore.Probe) {}) // until the session ends
			h.Close()
		}
		again := func() (*handle, time.Duration) {
			start := time.Now()
			return b.mustJoin(t, "a", content(1)), time.Since(start)
		}
		h, at := again()
		if at != 0 {
			t.Errorf("the first attempt waits %s", at)
		}
		var waits []time.Duration
		for range 3 {
			lose(h)
			h, at = again()
			waits = append(waits, at)
		}
		if !slices.IsSorted(waits) || waits[0] != 250*time.Millisecond || waits[2] == waits[0] {
			t.Errorf("sessions that do not get as far as a sync are begun after %v", waits)
		}
		h.BootstrapComplete()
		lose(h)
		if h, at = again(); at != waits[0] {
			t.Errorf("after a sync: %s, want %s", at, waits[0])
		}
		h.Close()
	})
}

// TestTheSharedPauseGrowsWithTheOwnCluster counts the attempts of one cluster, whose
// own pauses are shorter than the shared ones.
func TestTheSharedPauseGrowsWithTheOwnCluster(t *testing.T) {
	inBasin(t, func(t *testing.T, b *basin) {
		b.refuse = errors.New("refused")
		nodes := 6
		b.stretch = etcd.Options{ClusterSize: func() int { return nodes }}.Stretch
		attempts := func() (n int) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			for ; ctx.Err() == nil; n++ {
				if _, err := b.join(ctx, "a", content(1)); err == nil {
					t.Fatal("connected")
				}
			}
			return n
		}
		few := attempts()
		nodes = 5000                                                                  // the number changes meanwhile
		if many := attempts(); few < 1200 || few > 1210 || many < 280 || many > 290 { // pauses of 3 s and 12.8 s
			t.Errorf("%d attempts in an hour, with 5,000 nodes %d", few, many)
		}
	})
}
