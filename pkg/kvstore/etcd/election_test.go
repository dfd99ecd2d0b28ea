package etcd

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/kvtest"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// lead starts a candidate in a goroutine. It leads until its context ends.
func lead(ctx context.Context, w kvstore.Writer) (leads <-chan *kvstore.Lock, ended <-chan error) {
	locks, end := make(chan *kvstore.Lock, 1), make(chan error, 1)
	go func() {
		end <- kvstore.Lead(ctx, w, "lead", func(ctx context.Context, l *kvstore.Lock) error {
			locks <- l
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	return locks, end
}

// TestLeadersFollowEachOther: one of several candidates leads at a time, and the next one leads
// when it returns.
func TestLeadersFollowEachOther(t *testing.T) {
	t.Parallel()
	srv := etcdtest.Start(t)
	ctx := waittest.Context(t)
	var leading atomic.Int32
	terms := make(chan int)
	candidate := func(n int) <-chan error {
		e := connect(t, addresses(t, srv.Endpoint()), quick())
		ended := make(chan error, 1)
		go func() {
			ended <- kvstore.Lead(ctx, e, "lead", func(ctx context.Context, l *kvstore.Lock) error {
				if leading.Add(1) != 1 {
					t.Error("two lead at once")
				}
				defer leading.Add(-1)
				if _, err := e.Put(ctx, "leader", fmt.Append(nil, n), kvstore.Holding(l)); err != nil {
					return err
				}
				terms <- n
				return nil
			})
		}()
		return ended
	}
	var ends []<-chan error
	for n := range 4 {
		ends = append(ends, candidate(n))
	}
	seen := map[int]bool{}
	for range 4 {
		seen[<-terms] = true
	}
	if len(seen) != 4 {
		t.Errorf("%v have led", seen)
	}
	for n, ended := range ends {
		if err := <-ended; err != nil {
			t.Errorf("candidate %d: %v", n, err)
		}
	}
}

// TestALostLockEndsTheLead: when the lock's key is deleted, the context of the leader
// ends, and the error has the reason.
func TestALostLockEndsTheLead(t *testing.T) {
	t.Parallel()
	srv := etcdtest.Start(t)
	e := connect(t, addresses(t, srv.Endpoint()), quick())
	leads, ended := lead(waittest.Context(t), e)
	srv.Delete(t, (<-leads).Key)
	kvtest.WantErr(t, waittest.Receive(t, "the end", ended), kvstore.ErrLockLeaseExpired)
}

// TestATermEndsWithItsServer: a leader in one etcd does not lead in another etcd. It leads again
// after another call of Lead.
func TestATermEndsWithItsServer(t *testing.T) {
	t.Parallel()
	srv := etcdtest.StartProcess(t)
	o := hasty()
	o.LockTTL = time.Second
	endpoint := srv.Endpoint()
	d := NewDurable(func() (*clientfile.Config, error) { return clientfile.New(endpoint) }, o)
	ctx, cancel := context.WithCancel(waittest.Context(t))
	defer cancel()
	over := make(chan error, 1)
	go func() { over <- d.Run(ctx) }()
	leads, ended := lead(ctx, d)
	<-leads
	srv.RestartAsOther(t)
	kvtest.WantErr(t, <-ended, kvstore.ErrLockLeaseExpired)
	leads, ended = lead(ctx, d)
	<-leads
	cancel()
	kvtest.WantErr(t, <-ended, context.Canceled)
	<-over
}

// TestALeaderThatNobodyAnswers: when etcd is frozen, the leader does not lead for longer than the lock's TTL, and does
// not wait for an answer.
func TestALeaderThatNobodyAnswers(t *testing.T) {
	t.Parallel()
	srv := etcdtest.StartProcess(t)
	o := hasty()
	o.LockTTL = 3 * time.Second
	e := connect(t, addresses(t, srv.Endpoint()), o)
	leads, ended := lead(waittest.Context(t), e)
	<-leads
	srv.Freeze(t)
	defer srv.Thaw(t)
	kvtest.WantErr(t, waittest.Receive(t, "the end", ended), kvstore.ErrLockLeaseExpired)
}
