package servers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/simtest/members/agentapi"
	"github.com/mesh-agent/mesh-agent/simtest/pki"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// world is an agent, two friendly clusters, one whose keys an attacker writes, and friendly clients.
type world struct {
	tb       testing.TB
	dir      string
	agent    *agent
	friendly [2]*cluster
	evil     *cluster
	pulses   pulses
	friends  []*friend
	now      atomic.Int32 // the phase
	secure   *tls.Config  // for clients of the API and xDS; nil for plain text
	caFile   string

	running context.Context // of the friends, until the end of the test
	work    sync.WaitGroup
}

// newSecureWorld is a world whose API and xDS use TLS.
func newSecureWorld(tb testing.TB) *world {
	tb.Helper()
	dir := tb.TempDir()
	ca, err := pki.NewCA("authority")
	must(tb, err)
	pair, err := ca.Server([]string{"127.0.0.1"})
	must(tb, err)
	cert, key, err := pair.Write(dir, "agent")
	must(tb, err)
	file, err := ca.Write(dir, "ca")
	must(tb, err)
	w := &world{tb: tb, secure: &tls.Config{RootCAs: ca.Pool(), MinVersion: tls.VersionTLS12}, caFile: file}
	w.start("--tls-cert-file", cert, "--tls-key-file", key)
	return w
}

// newWorld starts everything, and waits until the agent is ready.
func newWorld(tb testing.TB, flags ...string) *world {
	tb.Helper()
	w := &world{tb: tb}
	w.start(flags...)
	return w
}

func (w *world) start(flags ...string) {
	tb := w.tb
	tb.Helper()
	w.dir, w.pulses.begun = tb.TempDir(), make(map[uint32]time.Time)
	for i := range w.friendly {
		w.friendly[i] = newCluster(tb, w.dir, fmt.Sprint("c", i+1), uint32(i+1))
	}
	w.evil = newCluster(tb, w.dir, "evil", 9)
	w.agent = startAgent(tb, w.dir, flags...)
	w.until("all clusters to be fresh", func() error { return w.fresh("c1", "c2", "evil") })
	w.agent.first = resident(w.agent.cmd.Process.Pid)
	ctx, cancel := context.WithCancel(context.Background())
	w.running = ctx
	tb.Cleanup(func() { cancel(); w.work.Wait() })
	w.work.Go(func() { w.changePulse(ctx) })
	w.work.Go(func() { w.looks(ctx) })
	w.befriend("DNS UDP", func(ctx context.Context, f *friend) error { w.resolves(ctx, f, "udp"); return nil })
	w.befriend("DNS TCP", func(ctx context.Context, f *friend) error { w.resolves(ctx, f, "tcp"); return nil })
	w.befriend("probe", func(ctx context.Context, f *friend) error { w.probes(ctx, f); return nil })
	w.befriend("watch", w.watches)
	w.befriend("xDS delta", w.followsIncrementally)
	w.befriend("xDS", w.follows)
}

// befriend adds a friendly client until the end of the test.
func (w *world) befriend(name string, run func(context.Context, *friend) error) {
	f := &friend{name: name, now: &w.now}
	w.friends = append(w.friends, f)
	ctx := w.running
	w.work.Go(func() {
		if err := run(ctx, f); err != nil && ctx.Err() == nil {
			f.loses(err)
		}
	})
}

// until waits for a condition, or for the end of the process.
func (w *world) until(what string, try func() error) {
	w.tb.Helper()
	waittest.Try(w.tb, what, func() error {
		if !w.agent.alive() {
			w.tb.Fatalf("the agent ended before %s", what)
		}
		return try()
	})
}

// looks measures the memory until the context ends.
func (w *world) looks(ctx context.Context) {
	for waiting.Sleep(ctx, 10*time.Millisecond) == nil && w.agent.alive() {
		w.agent.look()
	}
}

// staleAfter is the maximum age of a healthy cluster's data, on a busy machine.
const staleAfter = 30.0 // seconds

// fresh returns an error if some clusters are not fresh.
func (w *world) fresh(names ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), friendlyTime)
	defer cancel()
	all, err := agentapi.List[api.Cluster](ctx, w.agent.socket, "clusters")
	if err != nil {
		return err
	}
	known := make(map[string]api.Cluster)
	for _, c := range all {
		known[c.Name] = c
	}
	for _, name := range names {
		c := known[name]
		worst := c.Freshness.Worst
		switch {
		case c.State != "ready" || !c.Ready:
			err = errors.Join(err, fmt.Errorf("%s is %s: %s %s", name, c.State, c.Message, c.LastError))
		case worst.State != "synced" || worst.AgeSeconds == nil || *worst.AgeSeconds > staleAfter:
			err = errors.Join(err, fmt.Errorf("%s is known as of long ago: %+v", name, worst))
		}
	}
	return err
}

// judge checks at the end that the process lives, and how its friends were served.
func (w *world) judge(times float64) {
	w.tb.Helper()
	w.now.Store(int32(unmeasured))
	if !w.agent.alive() {
		return // the agent's end is reported elsewhere; the friends could only report the same
	}
	w.until("the friendly clusters to be fresh", func() error { return w.fresh("c1", "c2") })
	for _, f := range w.friends {
		f.judge(w.tb, times)
	}
	w.judgeMetrics(w.tb)
}
