package etcd

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// fake is an etcd with scripted answers, for answers that a real etcd never sends.
type fake struct {
	pb.UnimplementedKVServer
	pb.UnimplementedWatchServer
	pb.UnimplementedMaintenanceServer

	rangeFn  func(n int64, r *pb.RangeRequest) (*pb.RangeResponse, error)
	watchFn  func(s pb.Watch_WatchServer) error
	statusFn func() (*pb.StatusResponse, error)
	ranges   atomic.Int64
}

// header is the header of a valid answer.
func header(rev int64) *pb.ResponseHeader { return &pb.ResponseHeader{ClusterId: 0xf00, Revision: rev} }

func (f *fake) Range(_ context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	n := f.ranges.Add(1)
	if f.rangeFn == nil || n == 1 { // the first read is that of Connect
		return &pb.RangeResponse{Header: header(10)}, nil
	}
	return f.rangeFn(n, r)
}

func (f *fake) Watch(s pb.Watch_WatchServer) error { return f.watchFn(s) }

func (f *fake) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	if f.statusFn == nil {
		return &pb.StatusResponse{Header: header(10), Version: "3.6.0"}, nil
	}
	return f.statusFn()
}

// start serves the fake and connects to it.
func (f *fake) start(t testing.TB, o Options) *Session {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	f.serve(t, l)
	return connect(t, addresses(t, "http://"+l.Addr().String()), o)
}

// serve serves the fake until the end of the test.
func (f *fake) serve(t testing.TB, l net.Listener) {
	t.Helper()
	s := grpc.NewServer(grpc.MaxSendMsgSize(1 << 30))
	pb.RegisterKVServer(s, f)
	pb.RegisterWatchServer(s, f)
	pb.RegisterMaintenanceServer(s, f)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
}
