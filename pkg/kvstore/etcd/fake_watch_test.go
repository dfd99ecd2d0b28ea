package etcd

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/kvtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func put(rev int64) *mvccpb.Event {
	return &mvccpb.Event{Kv: &mvccpb.KeyValue{Key: fmt.Appendf(nil, "p/%d", rev), ModRevision: rev}}
}

// script answers a watch with fixed responses and then waits.
func script(responses ...*pb.WatchResponse) func(pb.Watch_WatchServer) error {
	return func(s pb.Watch_WatchServer) error {
		if _, err := s.Recv(); err != nil {
			return err
		}
		for _, r := range responses {
			if err := s.Send(r); err != nil {
				return err
			}
		}
		<-s.Context().Done()
		return nil
	}
}

func confirmed() *pb.WatchResponse { return &pb.WatchResponse{Header: header(10), Created: true} }

// TestPositions tests the position of a batch, for every kind of response.
func TestPositions(t *testing.T) {
	t.Parallel()
	f := &fake{watchFn: script(
		confirmed(),
		&pb.WatchResponse{Header: header(900), Events: []*mvccpb.Event{put(11), put(12)}}, // catching up
		&pb.WatchResponse{Header: header(900), WatchId: -1},                               // progress
		&pb.WatchResponse{Header: header(800), WatchId: -1},                               // late
		&pb.WatchResponse{Header: header(950), Fragment: true, Events: []*mvccpb.Event{put(901), put(902)}},
		&pb.WatchResponse{Header: header(950), Fragment: true, Events: []*mvccpb.Event{put(902)}},
		&pb.WatchResponse{Header: header(950), Events: []*mvccpb.Event{put(902), put(903)}}, // the last fragment
	)}
	e := f.start(t, quick())
	st := watch(t, e, "p/", position(10))
	for i, want := range []string{"2@12", "0@900", "0@900", "2@900 partial", "1@900 partial", "2@903"} {
		b, err := st.Recv()
		must(t, err)
		got := fmt.Sprintf("%d@%d", len(b.Events), b.At.Revision)
		if b.Partial {
			got += " partial"
		}
		if got != want || b.At.ClusterID != 0xf00 {
			t.Errorf("batch %d: %s of %x, want %s", i, got, b.At.ClusterID, want)
		}
	}
}

func TestWatchRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		answer *pb.WatchResponse
		kind   error
		parts  []string
	}{
		{"permission", &pb.WatchResponse{Header: header(10), Created: true, Canceled: true, WatchId: -1, CancelReason: rpctypes.ErrGRPCPermissionDenied.Error()}, kvstore.ErrPermissionDenied, []string{"permission denied", "role"}},
		{"token", &pb.WatchResponse{Header: header(10), Created: true, Canceled: true, CancelReason: rpctypes.ErrGRPCInvalidAuthToken.Error()}, kvstore.ErrUnauthenticated, []string{"invalid auth token"}},
		{"compacted", &pb.WatchResponse{Header: header(10), Canceled: true, CompactRevision: 9}, kvstore.ErrCompacted, []string{"up to 9", "revision 11 is wanted"}},
		{"no leader", &pb.WatchResponse{Header: header(10), Canceled: true, CancelReason: "etcdserver: no leader"}, nil, []string{"no leader", "lost its quorum"}},
		{"without a reason", &pb.WatchResponse{Header: header(10), Canceled: true}, nil, []string{"without a reason"}},
		{"with something else", &pb.WatchResponse{Header: header(10), WatchId: 5}, kvstore.ErrProtocol, []string{"watch ID 5"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := (&fake{watchFn: script(c.answer)}).start(t, quick())
			_, err := e.Watch(waittest.Context(t), "p/", position(10))
			kvtest.Contains(t, err, append(c.parts, "kvstore watch \"p/\"")...)
			if c.kind != nil {
				kvtest.WantErr(t, err, c.kind)
			}
			if _, err := e.Head(waittest.Context(t)); errors.Is(err, kvstore.ErrProtocol) != (c.kind == kvstore.ErrProtocol) { //nolint:errorlint // the case's own
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

// TestWatchOpenDeadline: a server never confirms the watch.
func TestWatchOpenDeadline(t *testing.T) {
	t.Parallel()
	o := quick()
	o.Timings.WatchOpen = 50 * time.Millisecond
	e := (&fake{watchFn: script()}).start(t, o)
	kvtest.WantErr(t, second(e.Watch(waittest.Context(t), "p/", position(10))), context.DeadlineExceeded, "opening the watch: no answer within 50ms")
}

// TestWatchAsksForFragments: a watch also requires a server that has a leader. A fragment that
// is too large breaks the protocol.
func TestWatchAsksForFragments(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 1)
	f := &fake{watchFn: func(s pb.Watch_WatchServer) error {
		r, err := s.Recv()
		if err != nil {
			return err
		}
		c := r.GetCreateRequest()
		md, _ := metadata.FromIncomingContext(s.Context())
		asked <- fmt.Sprintf("%s fragment=%t leader=%v", c.Key, c.Fragment, md.Get(rpctypes.MetadataRequireLeaderKey))
		if err := s.Send(confirmed()); err != nil {
			return err
		}
		return status.Error(codes.ResourceExhausted, "trying to send message larger than max (9 vs. 8)")
	}}
	st := watch(t, f.start(t, quick()), "p/", position(10))
	_, err := st.Recv()
	kvtest.WantErr(t, err, kvstore.ErrProtocol, "larger than 12 MiB")
	_, again := st.Recv()
	if again != err { //nolint:errorlint // it is to be the very same
		t.Errorf("the second error is another: %v", again)
	}
	if got, want := <-asked, "p/ fragment=true leader=[true]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestWatchDoubtsALaggingMember: a member whose confirmation is behind the position may
// lag; only a linearizable read proves another history.
func TestWatchDoubtsALaggingMember(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		head  int64
		fails bool
	}{{"it lags", 20, false}, {"it was wiped", 15, true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := &fake{
				watchFn: script(confirmed()),
				rangeFn: func(int64, *pb.RangeRequest) (*pb.RangeResponse, error) {
					return &pb.RangeResponse{Header: header(c.head)}, nil
				},
			}
			e := f.start(t, quick())
			st, err := e.Watch(waittest.Context(t), "p/", kvstore.Position{ClusterID: 0xf00, Revision: 20})
			if c.fails {
				kvtest.WantErr(t, err, kvstore.ErrServerChanged, "has never reached 20")
				return
			}
			must(t, err)
			st.Close()
		})
	}
}
