package hostile

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
)

// server is a fake etcd: an honest core behind etcd's gRPC services, and a rule that spoils the answers before they are
// sent.
type server struct {
	pb.UnimplementedKVServer
	pb.UnimplementedWatchServer
	pb.UnimplementedMaintenanceServer
	pb.UnimplementedLeaseServer
	pb.UnimplementedAuthServer

	*core
	rule   atomic.Pointer[rule] // nil for an honest server
	broken atomic.Int64         // answers that a rule has spoilt
	proxy  *proxy
	grpc   *grpc.Server
	leases atomic.Int64
}

// serve runs a server until the end of the test.
func serve(tb testing.TB, clusterID uint64) *server {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(tb, err)
	return serveOn(tb, l, clusterID)
}

func serveOn(tb testing.TB, l net.Listener, clusterID uint64) *server {
	s := &server{core: newCore(clusterID)}
	s.proxy = &proxy{Listener: l, rule: &s.rule, broken: &s.broken, conns: make(map[net.Conn]struct{})}
	s.grpc = grpc.NewServer(
		grpc.MaxSendMsgSize(1<<30), grpc.ForceServerCodecV2(codec{encoding.GetCodecV2("proto")}), grpc.UnaryInterceptor(s.spoil),
	)
	pb.RegisterKVServer(s.grpc, s)
	pb.RegisterWatchServer(s.grpc, s)
	pb.RegisterMaintenanceServer(s.grpc, s)
	pb.RegisterLeaseServer(s.grpc, s)
	pb.RegisterAuthServer(s.grpc, s)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.grpc.Serve(s.proxy) }()
	tb.Cleanup(func() { s.proxy.cut(); s.grpc.Stop(); <-ended; s.proxy.wait() })
	return s
}

// endpoint is the URL for clients.
func (s *server) endpoint() string { return "http://" + s.proxy.Addr().String() }

// breaks makes the server break a rule from now on, nil for none, on new connections.
func (s *server) breaks(r *rule) {
	s.rule.Store(r)
	s.proxy.cut()
}

// spoil has the rule change the answers of unary calls.
func (s *server) spoil(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	r := s.rule.Load()
	if r != nil && r.instead != nil {
		if a, ok := r.instead(); ok {
			return a, nil
		}
	}
	a, err := handle(ctx, req)
	if r == nil {
		return a, err
	}
	changed, cerr := a, err
	switch q := req.(type) {
	case *pb.RangeRequest:
		if r.ranged != nil && err == nil {
			changed, cerr = r.ranged(ctx, s, q, a.(*pb.RangeResponse))
		}
	case *pb.StatusRequest:
		if r.status != nil {
			changed, cerr = r.status(ctx, s, a.(*pb.StatusResponse))
		}
	case *pb.TxnRequest:
		if r.transacted != nil && err == nil {
			changed, cerr = r.transacted(a.(*pb.TxnResponse)), nil
		}
	default:
		if r.leased != nil && err == nil {
			changed = r.leased(a)
		}
	}
	return changed, cerr
}

// spoilt counts an answer that a rule has changed.
func (s *server) spoilt() { s.broken.Add(1) }

func (s *server) Range(_ context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	return s.read(r)
}

func (s *server) Txn(_ context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	return s.transact(r)
}

func (s *server) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	return &pb.StatusResponse{Header: s.header(), Version: "3.6.0", Leader: 1, DbSize: 1 << 20}, nil
}

func (s *server) LeaseGrant(_ context.Context, r *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	return &pb.LeaseGrantResponse{Header: s.header(), ID: 1000 + s.leases.Add(1), TTL: r.TTL}, nil
}

func (s *server) LeaseRevoke(context.Context, *pb.LeaseRevokeRequest) (*pb.LeaseRevokeResponse, error) {
	return &pb.LeaseRevokeResponse{Header: s.header()}, nil
}

func (s *server) LeaseKeepAlive(st pb.Lease_LeaseKeepAliveServer) error {
	for {
		q, err := st.Recv()
		if err != nil {
			return nil //nolint:nilerr // the client is gone
		}
		var a any = &pb.LeaseKeepAliveResponse{Header: s.header(), ID: q.ID, TTL: 60}
		if r := s.rule.Load(); r != nil && r.leased != nil {
			a = r.leased(a)
		}
		if err := st.SendMsg(a); err != nil {
			return err
		}
	}
}

func (s *server) Authenticate(context.Context, *pb.AuthenticateRequest) (*pb.AuthenticateResponse, error) {
	return &pb.AuthenticateResponse{Header: s.header(), Token: "token"}, nil
}

// watched is one watch: a stream has only one, as our client makes them.
type watched struct {
	key, end []byte
	next     int64 // the first revision of the next events
	fragment bool
}

// Watch implements the service. Its responses go through the rule.
func (s *server) Watch(st pb.Watch_WatchServer) error {
	requests := make(chan *pb.WatchRequest)
	go func() {
		defer close(requests)
		for {
			q, err := st.Recv()
			if err != nil {
				return
			}
			select {
			case requests <- q:
			case <-st.Context().Done():
				return
			}
		}
	}()
	var w *watched
	for {
		var moved <-chan struct{}
		if w != nil {
			var err error
			if moved, err = s.push(st, w); err != nil {
				return err
			}
		}
		select {
		case q, open := <-requests:
			switch {
			case !open:
				return nil
			case q.GetCreateRequest() != nil:
				c := q.GetCreateRequest()
				w = &watched{key: c.Key, end: c.RangeEnd, next: c.StartRevision, fragment: c.Fragment}
				if w.next == 0 {
					w.next = s.header().Revision + 1
				}
				if err := s.send(st, w, &pb.WatchResponse{Header: s.header(), Created: true}); err != nil {
					return err
				}
				if err := s.flood(st, w); err != nil {
					return err
				}
			case q.GetProgressRequest() != nil && w != nil:
				if err := s.send(st, w, &pb.WatchResponse{Header: s.header(), WatchId: 0}); err != nil {
					return err
				}
			}
		case <-moved:
		case <-st.Context().Done():
			return nil
		}
	}
}

// push sends the pending events.
func (s *server) push(st pb.Watch_WatchServer, w *watched) (moved <-chan struct{}, err error) {
	events, head, compacted, moved := s.since(w.next, w.key, w.end)
	if compacted > 0 {
		return moved, s.send(st, w, &pb.WatchResponse{Header: head, Canceled: true, CompactRevision: compacted, CancelReason: "compacted"})
	}
	if len(events) == 0 {
		return moved, nil
	}
	w.next = head.Revision + 1
	return moved, s.send(st, w, &pb.WatchResponse{Header: head, Events: events})
}

// send sends an answer, or what the rule makes of it.
func (s *server) send(st pb.Watch_WatchServer, w *watched, a *pb.WatchResponse) error {
	r := s.rule.Load()
	if r == nil || r.watched == nil {
		return st.SendMsg(a)
	}
	all, err := r.watched(st.Context(), s, w, a)
	if err != nil {
		return err
	}
	for _, one := range all {
		if err := st.SendMsg(one); err != nil {
			return err
		}
	}
	return nil
}

// flood sends unrequested responses until the rule ends it.
func (s *server) flood(st pb.Watch_WatchServer, w *watched) error {
	r := s.rule.Load()
	if r == nil || r.flood == nil {
		return nil
	}
	return r.flood(st.Context(), s, w, func(a any) error { s.spoilt(); return st.SendMsg(a) })
}

// codec passes on messages that are already encoded.
type codec struct{ encoding.CodecV2 }

// encoded is an encoded message. Its parts may all be the same buffer, so
// that huge messages cost no memory here.
type encoded struct{ parts [][]byte }

func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	e, is := v.(encoded)
	if !is {
		return c.CodecV2.Marshal(v)
	}
	out := make(mem.BufferSlice, len(e.parts))
	for i, p := range e.parts {
		out[i] = mem.SliceBuffer(p)
	}
	return out, nil
}

// proxy accepts connections, and passes them to gRPC, or to a rule with its own protocol.
type proxy struct {
	net.Listener
	rule   *atomic.Pointer[rule]
	broken *atomic.Int64
	wg     sync.WaitGroup // for the connections of a rule

	mu    sync.Mutex // guards conns
	conns map[net.Conn]struct{}
}

// Accept implements [net.Listener] for gRPC.
func (d *proxy) Accept() (net.Conn, error) {
	for {
		c, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		k := &kept{c, d}
		d.mu.Lock()
		d.conns[k] = struct{}{}
		d.mu.Unlock()
		r := d.rule.Load()
		if r == nil || r.conn == nil {
			return k, nil
		}
		d.broken.Add(1)
		d.wg.Go(func() { defer k.Close(); r.conn(k) })
	}
}

// kept is a connection that the proxy can cut.
type kept struct {
	net.Conn
	d *proxy
}

func (k *kept) Close() error {
	k.d.mu.Lock()
	delete(k.d.conns, k)
	k.d.mu.Unlock()
	return k.Conn.Close()
}

// cut ends all connections.
func (d *proxy) cut() {
	d.mu.Lock()
	var all []net.Conn
	for c := range d.conns {
		all = append(all, c)
	}
	d.mu.Unlock()
	for _, c := range all {
		_ = c.Close()
	}
}

func (d *proxy) wait() { d.wg.Wait() }

// drain reads until the connection ends.
func drain(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

// lists reports whether a request is a page of one of the key families.
func lists(r *pb.RangeRequest) bool { return about(r, "cilium/state/") && len(r.RangeEnd) > 0 }

func about(r *pb.RangeRequest, prefix string) bool { return strings.HasPrefix(string(r.Key), prefix) }
