package etcd

import (
	"context"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/kvtest"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestLockOutlivesItsDeadHolder: one of several clients is cut off while it holds the lock. The
// others get the lock when its lease has ended. After it has reconnected, it cannot write.
func TestLockOutlivesItsDeadHolder(t *testing.T) {
	t.Parallel()
	clients, each := 16, 3
	if testing.Short() {
		clients = 4
	}
	srv := etcdtest.Start(t)
	ctx := waittest.Context(t)
	var net cutter
	o := hasty()
	o.Dial, o.LockTTL = net.dial, 3*time.Second
	dead, kill := writer(t, srv.Endpoint(), o)
	l := lock(t, dead, "locks/counter")
	must(t, kvtest.Increment(ctx, dead, l))
	errs := make(chan error, clients)
	for range clients - 1 {
		e, _ := writer(t, srv.Endpoint(), hasty())
		go func() { errs <- kvtest.CountUnderLock(ctx, e, each) }()
	}
	net.redirect(nowhere)
	net.cut()
	kill()
	for range clients - 1 {
		must(t, <-errs)
	}
	net.redirect("")
	waittest.Until(t, "the dead one is connected again", func() bool { _, err := dead.Head(ctx); return err == nil })
	kvtest.WantErr(t, kvtest.Increment(ctx, dead, l), kvstore.ErrLockLeaseExpired)
	kv, _, err := dead.Get(ctx, "counter")
	if want := strconv.Itoa(1 + each*(clients-1)); err != nil || string(kv.Value) != want {
		t.Errorf("the counter is %s, want %s; %v", kv.Value, want, err)
	}
}

// TestUnlockWithoutConnection: the lock is free for others once the connection is
// restored, although its lease continues.
func TestUnlockWithoutConnection(t *testing.T) {
	t.Parallel()
	srv := etcdtest.Start(t)
	var net cutter
	o := hasty()
	o.Dial, o.LockTTL = net.dial, time.Hour
	o.Timings.Write, o.Timings.StaleLock = 15*time.Second, 15*time.Second
	e, _ := writer(t, srv.Endpoint(), o)
	l := lock(t, e, "locks/l")
	net.redirect(nowhere)
	net.cut()
	l.Unlock()
	if n := e.Status().Locks; n != 0 {
		t.Errorf("%d locks held", n)
	}
	net.redirect("")
	other, _ := writer(t, srv.Endpoint(), hasty())
	lock(t, other, "locks/l").Unlock()
	lock(t, e, "locks/l").Unlock()
}

func TestLockTimesOut(t *testing.T) {
	t.Parallel()
	srv := etcdtest.Start(t)
	ctx := waittest.Context(t)
	o := hasty()
	o.Timings.Lock = 500 * time.Millisecond
	a, _ := writer(t, srv.Endpoint(), hasty())
	b, _ := writer(t, srv.Endpoint(), o)
	l := lock(t, a, "locks/l")
	waittest.Until(t, "the waiter to learn who holds the lock before its time is up", func() bool {
		_, err := b.Lock(ctx, "locks/l")
		kvtest.WantErr(t, err, context.DeadlineExceeded, `kvstore lock "locks/l": not free within 500ms`, "when its lease ends")
		return strings.Contains(err.Error(), "held by "+l.Key)
	})
	waittest.Until(t, "the waiter's key is gone", func() bool {
		keys := 0
		_, err := a.List(ctx, "locks/l/", func(p kvstore.Page) error { keys += len(p.Items); return nil })
		return err == nil && keys == 1
	})
	var own *kvstore.Lock
	waittest.Until(t, "a lock that is free, which a slow server may not grant in time", func() bool {
		var err error
		own, err = b.Lock(ctx, "locks/own")
		return err == nil
	})
	kvtest.WantErr(t, second(b.Lock(ctx, "locks/own")), context.DeadlineExceeded, "held by this process, taken at etcd/locking_test.go:")
	own.Unlock()
	l.Unlock()
}

func TestLocksHeldForLongAreReportedOnce(t *testing.T) {
	t.Parallel()
	srv := etcdtest.Start(t)
	var log waittest.Output
	o := hasty()
	o.Timings.StaleLock = 150 * time.Millisecond
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	e, _ := writer(t, srv.Endpoint(), o)
	var w kvstore.Writer = e // like most callers
	l := lock(t, w, "locks/long")
	waittest.Until(t, "the report", func() bool { return len(log.Lines("locks/long")) > 0 })
	report := log.Lines("locks/long")[0]
	if !regexp.MustCompile(`level=WARN .*held=\d+ms by=etcd/helper_test.go:\d+`).MatchString(report) {
		t.Errorf("reported as %s", report)
	}
	second := lock(t, w, "locks/later")
	waittest.Until(t, "the other report", func() bool { return len(log.Lines("locks/later")) > 0 })
	if n := len(log.Lines("locks/long")); n != 1 {
		t.Errorf("reported %d times", n)
	}
	if _, err := w.Put(waittest.Context(t), "k", nil, kvstore.Holding(l), kvstore.Holding(second)); err != nil {
		t.Errorf("a reported lock was taken away: %v", err)
	}
	l.Unlock()
	second.Unlock()
}
