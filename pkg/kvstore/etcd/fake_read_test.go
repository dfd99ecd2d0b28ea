package etcd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/kvtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestEveryHeaderIsChecked sends one bad header in one kind of response at a
// time: it ends the session, and everything after it fails the same way.
func TestEveryHeaderIsChecked(t *testing.T) {
	t.Parallel()
	bad := map[string]struct {
		header *pb.ResponseHeader
		kind   error
	}{
		"no header":          {nil, kvstore.ErrProtocol},
		"no cluster ID":      {&pb.ResponseHeader{Revision: 10}, kvstore.ErrProtocol},
		"another cluster ID": {&pb.ResponseHeader{ClusterId: 0xbad, Revision: 10}, kvstore.ErrServerChanged},
		"no revision":        {header(0), kvstore.ErrProtocol},
		"a huge revision":    {header(math.MaxInt64), kvstore.ErrProtocol},
		"below zero":         {header(-1), kvstore.ErrProtocol},
	}
	good := header(10)
	for what, b := range bad {
		h := b.header
		inRange := func(*pb.RangeRequest) *pb.RangeResponse { return &pb.RangeResponse{Header: h} }
		secondPage := func(r *pb.RangeRequest) *pb.RangeResponse {
			if r.Revision != 0 {
				return &pb.RangeResponse{Header: h}
			}
			return &pb.RangeResponse{Header: good, More: true, Count: 2, Kvs: []*mvccpb.KeyValue{key("p/1", 2)}}
		}
		watching := func(created, event *pb.ResponseHeader) *fake {
			return &fake{watchFn: script(&pb.WatchResponse{Header: created, Created: true}, &pb.WatchResponse{Header: event, Events: []*mvccpb.Event{put(11)}})}
		}
		list := func(ctx context.Context, e *Session) error {
			return second(e.List(ctx, "p/", func(kvstore.Page) error { return nil }))
		}
		watch := func(ctx context.Context, e *Session) error {
			st, err := e.Watch(ctx, "p/", position(10))
			if err != nil {
				return err
			}
			defer st.Close()
			_, err = st.Recv()
			return err
		}
		for _, c := range []struct {
			in   string
			f    *fake
			call func(context.Context, *Session) error
		}{
			{"get", respond(inRange), func(ctx context.Context, e *Session) error { _, _, err := e.Get(ctx, "k"); return err }},
			{"head", respond(inRange), func(ctx context.Context, e *Session) error { return second(e.Head(ctx)) }},
			{"recall", respond(inRange), func(ctx context.Context, e *Session) error {
				return second(e.Recall(ctx, "p/", "", position(10), 1))
			}},
			{"the first page", respond(inRange), list},
			{"a further page", respond(secondPage), list},
			{"the confirmation of a watch", watching(h, good), watch},
			{"an event", watching(good, h), watch},
		} {
			t.Run(what+" in "+c.in, func(t *testing.T) {
				t.Parallel()
				o := quick()
				o.PageLimit = 1
				e := c.f.start(t, o)
				err := c.call(waittest.Context(t), e)
				kvtest.WantErr(t, err, b.kind)
				kvtest.WantErr(t, second(e.Head(waittest.Context(t))), b.kind)
				kvtest.WantErr(t, ends(t, run(t.Context(), e, nil)), b.kind)
				if e.Status().Connected {
					t.Error("connected after the end")
				}
			})
		}
	}
}

func respond(f func(*pb.RangeRequest) *pb.RangeResponse) *fake {
	return &fake{rangeFn: func(_ int64, r *pb.RangeRequest) (*pb.RangeResponse, error) { return f(r), nil }}
}

func TestRevisionGoesBack(t *testing.T) {
	t.Parallel()
	e := respond(func(*pb.RangeRequest) *pb.RangeResponse { return &pb.RangeResponse{Header: header(9)} }).start(t, quick())
	kvtest.WantErr(t, second(e.Head(waittest.Context(t))), kvstore.ErrServerChanged, "decreased from 10 to 9")
}

func TestHeaderInStatusIsChecked(t *testing.T) {
	t.Parallel()
	f := &fake{statusFn: func() (*pb.StatusResponse, error) {
		return &pb.StatusResponse{Header: &pb.ResponseHeader{ClusterId: 0xbad}}, nil
	}}
	e := f.start(t, quick())
	kvtest.WantErr(t, ends(t, run(t.Context(), e, nil)), kvstore.ErrServerChanged)
}

func TestStatusDeniedIsTolerated(t *testing.T) {
	t.Parallel()
	f := &fake{
		statusFn: func() (*pb.StatusResponse, error) { return nil, rpctypes.ErrGRPCPermissionDenied },
		watchFn:  script(confirmed()),
	}
	e := f.start(t, quick())
	s := e.Status()
	if !s.Connected || s.Server.Version != "" {
		t.Errorf("%+v", s)
	}
	kvtest.Contains(t, errors.New(s.String()), "connected", "may not ask")
	st := watch(t, e, "p/", s.Head)
	kvtest.WantErr(t, st.RequestProgress(), kvstore.ErrProgressUnreliable) // the version is not known
}

// TestTooLargePages: a page above the receive limit is requested again with fewer
// keys; if it has only one key, the server has broken the protocol.
func TestTooLargePages(t *testing.T) {
	t.Parallel()
	tooLarge := status.Error(codes.ResourceExhausted, "grpc: received message larger than max (5 vs. 4)")
	for _, c := range []struct {
		name   string
		limit  int
		fits   int64 // a page with this number of keys is not too large
		limits []int64
		err    bool
	}{
		{"halves until it fits", 20, 6, []int64{20, 10, 5}, false},
		{"begins with pages when there was no limit", 0, 5000, []int64{0, 5000}, false},
		{"gives up at one key", 4, 0, []int64{4, 2, 1}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var limits []int64
			f := &fake{rangeFn: func(_ int64, r *pb.RangeRequest) (*pb.RangeResponse, error) {
				limits = append(limits, r.Limit)
				if r.Limit == 0 || r.Limit > c.fits {
					return nil, tooLarge
				}
				return &pb.RangeResponse{Header: header(10), Count: 1, Kvs: []*mvccpb.KeyValue{key("p/1", 2)}}, nil
			}}
			o := quick()
			o.PageLimit = c.limit
			_, err := f.start(t, o).List(waittest.Context(t), "p/", func(kvstore.Page) error { return nil })
			if (err != nil) != c.err || c.err && (!errors.Is(err, kvstore.ErrProtocol) || !strings.Contains(err.Error(), "12 MiB")) {
				t.Errorf("error %v", err)
			}
			if fmt.Sprint(limits) != fmt.Sprint(c.limits) {
				t.Errorf("limits %v, want %v", limits, c.limits)
			}
		})
	}
}

// TestPagesShrinkWithLargeValues bounds the memory of a page.
func TestPagesShrinkWithLargeValues(t *testing.T) {
	t.Parallel()
	many := func(n, size int) []kvstore.KeyValue {
		return slices.Repeat([]kvstore.KeyValue{{Value: make([]byte, size)}}, n)
	}
	for _, c := range []struct {
		name  string
		limit int64
		last  []kvstore.KeyValue
		want  int64
	}{
		{"small values", 5000, many(5000, 200), 5000},
		{"no limit", 0, many(1, pageBytes+1), 0},
		{"twice too much", 100, many(100, pageBytes/50), 50},
		{"one value that is too large", 100, many(1, 3*pageBytes), 1},
	} {
		if got := nextLimit(c.limit, c.last); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestReadDeadline(t *testing.T) {
	t.Parallel()
	block := make(chan struct{})
	t.Cleanup(func() { close(block) })
	f := &fake{rangeFn: func(int64, *pb.RangeRequest) (*pb.RangeResponse, error) { <-block; return nil, errors.New("late") }}
	o := quick()
	o.Timings.Read, o.Timings.Page = 50*time.Millisecond, 60*time.Millisecond
	e := f.start(t, o)
	_, _, err := e.Get(t.Context(), "k")
	kvtest.Contains(t, err, `kvstore get "k": get: no answer within 50ms`, "overloaded")
	kvtest.WantErr(t, err, context.DeadlineExceeded)
	kvtest.Contains(t, second(e.List(t.Context(), "p/", func(kvstore.Page) error { return nil })), `kvstore list "p/"`, "no answer within 60ms")
	// The operation waits for the limit of concurrent operations, until the session ends.
	o.MaxInflight, o.Timings.Read = 1, time.Minute
	e = (&fake{rangeFn: f.rangeFn}).start(t, o)
	got := make(chan error, 2)
	for range 2 {
		go func() { _, _, err := e.Get(t.Context(), "k"); got <- err }()
	}
	waittest.Until(t, "one is under way", func() bool { return len(e.limit.inflight) == 1 })
	e.Close()
	for range 2 {
		kvtest.WantErr(t, <-got, kvstore.ErrClosed)
	}
}
