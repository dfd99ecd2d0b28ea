package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/waiting/waittest"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcdtest"
)

// TestLeadersFollowEachOther: of several candidates one leads at a time; who is
// told that the lock is lost has not written since, and who returns is followed.
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

// TestALostLockEndsTheLead: when the lock's key is gone, the context of whoever
// leads ends, and the error says why.
func TestALostLockEndsTheLead(t *testing.T) {
	t.Parallel()
	srv := etcdtest.Start(t)
	e := connect(t, addresses(t, srv.Endpoint()), quick())
	leads := make(chan *kvstore.Lock, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- kvstore.Lead(waittest.Context(t), e, "lead", func(ctx context.Context, l *kvstore.Lock) error {
			leads <- l
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	srv.Delete(t, (<-leads).Key)
	wantErr(t, waittest.Receive(t, "the end", ended), kvstore.ErrLockLeaseExpired)
}

// TestATermEndsWithItsServer: who leads there does not lead in another etcd; the
// next term is had when it is asked for again.
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
	term := func(during func()) error {
		return kvstore.Lead(ctx, d, "lead", func(ctx context.Context, _ *kvstore.Lock) error {
			during()
			<-ctx.Done()
			return ctx.Err()
		})
	}
	if err := term(func() { srv.RestartAsOther(t) }); !errors.Is(err, kvstore.ErrLockLeaseExpired) {
		t.Errorf("the first term ended with %v", err)
	}
	if err := term(cancel); !errors.Is(err, context.Canceled) {
		t.Errorf("the second term ended with %v", err)
	}
	<-over
}

// TestALeaderThatNobodyAnswers does not lead for longer than its lock lasts, and
// does not wait for the kvstore to be told so.
func TestALeaderThatNobodyAnswers(t *testing.T) {
	t.Parallel()
	srv := etcdtest.StartProcess(t)
	o := hasty()
	o.LockTTL = 3 * time.Second
	e := connect(t, addresses(t, srv.Endpoint()), o)
	leads := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- kvstore.Lead(waittest.Context(t), e, "lead", func(ctx context.Context, _ *kvstore.Lock) error {
			close(leads)
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	<-leads
	srv.Freeze(t)
	defer srv.Thaw(t)
	wantErr(t, waittest.Receive(t, "the end", ended), kvstore.ErrLockLeaseExpired)
}
