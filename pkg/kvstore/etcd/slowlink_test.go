package etcd

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc/test/bufconn"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// slowLink is a network that delivers only a few bytes at a time once it is slow.
type slowLink struct {
	to    func(context.Context) (net.Conn, error)
	mu    sync.Mutex
	pause time.Duration // after each piece
}

const piece = 4 << 10

func (l *slowLink) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	conn, err := l.to(ctx)
	if err != nil {
		return nil, err
	}
	return &slowConn{Conn: conn, link: l}, nil
}

func (l *slowLink) slow(pause time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pause = pause
}

type slowConn struct {
	net.Conn
	link *slowLink
}

func (c *slowConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b[:min(len(b), piece)])
	c.link.mu.Lock()
	pause := c.link.pause
	c.link.mu.Unlock()
	<-time.After(pause)
	return n, err
}

// TestASlowLinkEndsNoSession: a page over a slow link delays the watchdog's reads until after their deadline. The
// session must not end because of that, or the list would start again forever. Link and clock are those of a synctest
// bubble, so that nothing else is slow.
func TestASlowLinkEndsNoSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		page := &pb.RangeResponse{Header: header(10), Count: 20}
		for i := range page.Count {
			page.Kvs = append(page.Kvs, &mvccpb.KeyValue{Key: fmt.Appendf(nil, "p/%02d", i), Value: make([]byte, 50<<10), ModRevision: 5})
		}
		f := &fake{watchFn: script(confirmed()), rangeFn: func(_ int64, r *pb.RangeRequest) (*pb.RangeResponse, error) {
			if string(r.GetKey()) == "p/" {
				return page, nil
			}
			return &pb.RangeResponse{Header: header(10)}, nil
		}}
		server := bufconn.Listen(1 << 20)
		link := slowLink{to: server.DialContext}
		f.serve(t, server)
		o := quick()
		o.Dial, o.Timings.Probe = link.dial, 200*time.Millisecond
		e := connect(t, addresses(t, "http://c2.mesh.test:2379"), o)
		var got probes
		done := run(t.Context(), e, got.add)
		waittest.Until(t, "a probe", func() bool { _, n := got.last(); return n > 0 })
		link.slow(20 * time.Millisecond) // 1 MB takes 5 s, and the data in flight takes longer than a probe's deadline
		count := 0
		if _, err := e.List(t.Context(), "p/", func(p kvstore.Page) error { count += len(p.Items); return nil }); err != nil || count != 20 {
			t.Fatalf("%d of 20 keys: %v", count, err)
		}
		failed := 0
		got.mu.Lock()
		for _, p := range got.all {
			if p.Err != nil {
				failed++
			}
		}
		got.mu.Unlock()
		if failed <= o.MaxConsecutiveQuorumErrors {
			t.Errorf("%d probes failed: the link was not slow enough to show anything", failed)
		}
		link.slow(0)
		waittest.Until(t, "a probe that succeeds", func() bool { p, _ := got.last(); return p.Err == nil })
		select {
		case err := <-done:
			t.Errorf("the session ended: %v", err)
		default:
		}
	})
}
