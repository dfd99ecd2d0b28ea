package remotecluster

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
)

// TestPausesGrowUntilASessionLasts: the pauses grow also when each session is synced before the server breaks a rule.
// After a session that lasted, the first pause is short again.
func TestPausesGrowUntilASessionLasts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sessions := 0
		var b *bench
		b = newBench(t, func(p *Params) {
			p.Timings = DefaultTimings()
			p.Connect = func(ctx context.Context, cfg *clientfile.Config) (Client, error) {
				sessions++
				return b.connect(ctx, cfg)
			}
		})
		b.configure(plain(2))
		ctx, cancel := context.WithCancel(t.Context())
		var g errgroup.Group
		g.Go(func() error { b.cluster.Run(ctx, b.file); return nil })
		defer func() { cancel(); _ = g.Wait() }()

		synced := func() {
			for b.cluster.Status().ConnectedSince.IsZero() || !b.cluster.following() {
				<-time.After(10 * time.Millisecond)
			}
		}
		// breakDown ends the session and returns the pause after it.
		breakDown := func() time.Duration {
			b.mem.Break(fmt.Errorf("watch: %w: an event has no key", kvstore.ErrProtocol))
			for !b.cluster.Status().ConnectedSince.IsZero() {
				<-time.After(time.Millisecond)
			}
			synctest.Wait()
			return time.Until(b.cluster.current().retryAt)
		}
		begin := time.Now()
		var pause time.Duration
		for time.Since(begin) < 5*time.Minute {
			synced()
			pause = breakDown()
		}
		if pause < 2*time.Second || sessions > 100 { // 5 s with a jitter of one half
			t.Errorf("%d sessions in 5 minutes, the last pause %s", sessions, pause)
		}
		synced()
		<-time.After(2 * time.Minute)
		if pause = breakDown(); pause > 750*time.Millisecond {
			t.Errorf("a pause of %s after a session that lasted", pause)
		}
		synced()
		if pause = breakDown(); pause > 1125*time.Millisecond {
			t.Errorf("the second pause is %s", pause)
		}
	})
}

// TestConnectionsAreLogged: the log has the endpoint and the time that connecting took.
func TestConnectionsAreLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	b := newBench(t, func(p *Params) { p.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	b.ready()
	b.stop()
	if n := strings.Count(log.String(), "msg=Connected cluster=c2 endpoint="); n == 0 || !strings.Contains(log.String(), "took=") {
		t.Errorf("%d lines, want one for each session:\n%s", n, log.String())
	}
}
