package hostile

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
)

// writerRules are about a server's answers to writes, locks and leases.
func writerRules() []*rule {
	txn := func(name string, spoil func(*pb.TxnResponse)) *rule {
		return &rule{name: "transaction: " + name, transacted: func(a *pb.TxnResponse) any { spoil(a); return a }}
	}
	ops := func(name string, spoil func([]*pb.ResponseOp) []*pb.ResponseOp) []*rule {
		var all []*rule
		for _, met := range []string{"", ", and not met", ", and met"} {
			all = append(all, txn(name+met, func(a *pb.TxnResponse) {
				a.Responses = spoil(a.Responses)
				a.Succeeded = a.Succeeded && met != ", and not met" || met == ", and met"
			}))
		}
		return all
	}
	other := func(a *pb.ResponseOp) []*pb.ResponseOp { return []*pb.ResponseOp{a} }
	lease := func(name string, spoil func(h *pb.ResponseHeader, id, ttl *int64) *pb.ResponseHeader) *rule {
		return &rule{name: "lease: " + name, leased: func(a any) any {
			switch a := a.(type) {
			case *pb.LeaseGrantResponse:
				a.Header = spoil(a.Header, &a.ID, &a.TTL)
			case *pb.LeaseKeepAliveResponse:
				a.Header = spoil(a.Header, &a.ID, &a.TTL)
			}
			return a
		}}
	}
	number := func(id, ttl int64) func(h *pb.ResponseHeader, i, t *int64) *pb.ResponseHeader {
		return func(h *pb.ResponseHeader, i, t *int64) *pb.ResponseHeader { *i, *t = id, ttl; return h }
	}
	all := []*rule{
		txn("no header", func(a *pb.TxnResponse) { a.Header = nil }),
		txn("the highest revision", func(a *pb.TxnResponse) { a.Header.Revision = math.MaxInt64 }),
		txn("another cluster's", func(a *pb.TxnResponse) { a.Header.ClusterId++ }),
		{name: "transaction: no message", transacted: func(*pb.TxnResponse) any { return encoded{[][]byte{{}}} }},
		lease("no header", func(*pb.ResponseHeader, *int64, *int64) *pb.ResponseHeader { return nil }),
		lease("number 0", number(0, 60)), lease("for ever", number(7, math.MaxInt64)), lease("for no time", number(7, 0)), lease("for less than no time", number(7, math.MinInt64)),
		{name: "lease: no message", leased: func(any) any { return encoded{[][]byte{{}}} }},
	}
	return slices.Concat(
		all,
		ops("no parts", func([]*pb.ResponseOp) []*pb.ResponseOp { return nil }),
		ops("one part too few", func(r []*pb.ResponseOp) []*pb.ResponseOp { return r[:max(len(r)-1, 0)] }),
		ops("one part too many", func(r []*pb.ResponseOp) []*pb.ResponseOp { return append(r, new(pb.ResponseOp)) }),
		ops("empty parts", func(r []*pb.ResponseOp) []*pb.ResponseOp { return slices.Repeat(other(new(pb.ResponseOp)), len(r)) }),
		ops("parts of reads", func(r []*pb.ResponseOp) []*pb.ResponseOp {
			return slices.Repeat(other(&pb.ResponseOp{Response: &pb.ResponseOp_ResponseRange{ResponseRange: &pb.RangeResponse{}}}), len(r))
		}),
		ops("parts of puts", func(r []*pb.ResponseOp) []*pb.ResponseOp {
			return slices.Repeat(other(&pb.ResponseOp{Response: &pb.ResponseOp_ResponsePut{ResponsePut: &pb.PutResponse{}}}), len(r))
		}),
		ops("keys shorter than the lock's", func(r []*pb.ResponseOp) []*pb.ResponseOp {
			return slices.Repeat(other(&pb.ResponseOp{Response: &pb.ResponseOp_ResponseRange{
				ResponseRange: &pb.RangeResponse{Count: 1, Kvs: []*mvccpb.KeyValue{{Key: []byte("x"), CreateRevision: 1, ModRevision: 1}}},
			}}), len(r))
		}),
	)
}

// TestAnswersToWrites: each write operation on a hostile etcd returns an error or a
// result.
func TestAnswersToWrites(t *testing.T) {
	t.Parallel()
	for _, r := range writerRules() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, 5)
			s.put(map[string][]byte{"a": []byte("1")})
			for name, op := range operations() {
				e, lock := writer(t, s, name)
				s.rule.Store(r)
				t.Logf("%s: %v", name, op(t.Context(), e, lock))
				s.rule.Store(nil)
				e.Close()
			}
		})
	}
}

// writeTime is how long a write, or a lock, waits for a hostile etcd: long enough for an honest one on a busy machine.
const writeTime = 30 * time.Second

// writer is a session with a lock.
func writer(tb testing.TB, s *server, path string) (*etcd.Session, *kvstore.Lock) {
	tb.Helper()
	cfg, err := clientfile.New(s.endpoint())
	must(tb, err)
	o := impatient()
	o.Timings.Lock, o.Timings.Write, o.Timings.Close = writeTime, writeTime, 100*time.Millisecond
	e, err := etcd.Connect(tb.Context(), cfg, 0, o)
	must(tb, err)
	lock, err := e.Lock(tb.Context(), path)
	must(tb, err)
	return e, lock
}

// operations are all operations of a writer.
func operations() map[string]func(context.Context, *etcd.Session, *kvstore.Lock) error {
	return map[string]func(context.Context, *etcd.Session, *kvstore.Lock) error{
		"put": func(ctx context.Context, e *etcd.Session, l *kvstore.Lock) error {
			_, err := e.Put(ctx, "k", []byte("v"), kvstore.Holding(l))
			return err
		},
		"put with a lease": func(ctx context.Context, e *etcd.Session, l *kvstore.Lock) error {
			_, err := e.Put(ctx, "k", []byte("v"), kvstore.Leased(), kvstore.IfChanged(), kvstore.Holding(l))
			return err
		},
		"delete": func(ctx context.Context, e *etcd.Session, l *kvstore.Lock) error {
			_, err := e.Delete(ctx, "k", kvstore.Holding(l))
			return err
		},
		"delete a prefix": func(ctx context.Context, e *etcd.Session, l *kvstore.Lock) error {
			_, err := e.DeletePrefix(ctx, "k/", kvstore.Holding(l))
			return err
		},
		"update": func(ctx context.Context, e *etcd.Session, l *kvstore.Lock) error {
			_, err := e.Update(ctx, []kvstore.Write{{Key: "k", Value: []byte("v")}, {Key: "a", Delete: true}}, kvstore.Leased(), kvstore.Holding(l))
			return err
		},
		"get": func(ctx context.Context, e *etcd.Session, l *kvstore.Lock) error {
			_, _, err := e.Get(ctx, "a", kvstore.Holding(l))
			return err
		},
		"list": func(ctx context.Context, e *etcd.Session, l *kvstore.Lock) error {
			_, err := e.List(ctx, "a/", func(kvstore.Page) error { return nil }, kvstore.Holding(l))
			return err
		},
		"lock": func(ctx context.Context, e *etcd.Session, _ *kvstore.Lock) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second) // it asks repeatedly
			defer cancel()
			l, err := e.Lock(ctx, "another lock")
			if err == nil {
				l.Unlock()
			}
			return err
		},
		"unlock": func(_ context.Context, _ *etcd.Session, l *kvstore.Lock) error { l.Unlock(); return nil },
		"keep alive": func(ctx context.Context, e *etcd.Session, _ *kvstore.Lock) error {
			ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
			defer cancel()
			return e.Run(ctx, nil)
		},
	}
}
