package hostile

import (
	"bytes"
	"context"
	"io"
	"math"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/test/bufconn"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
)

// script is a server that sends the given answers, one after another, and then does not answer.
type script struct {
	*server
	answers atomic.Pointer[[][]byte] // nil for an honest server
	next    atomic.Int64
	pipe    *bufconn.Listener
}

func newScript(tb testing.TB) *script {
	s := &script{pipe: bufconn.Listen(1 << 20)}
	s.server = serveOn(tb, s.pipe, 0xf00)
	for range 9 {
		s.put(map[string][]byte{"p/a": []byte("1"), "p/b": []byte("2"), "p/c": []byte("3")})
	}
	s.rule.Store(&rule{name: "a script", instead: s.one, flood: func(_ context.Context, _ *server, _ *watched, send func(any) error) error {
		for {
			a, ok := s.one()
			if !ok {
				return io.EOF
			}
			if err := send(a); err != nil {
				return err
			}
		}
	}})
	return s
}

// one is the next answer; ok is false when there is none.
func (s *script) one() (a any, ok bool) {
	all, n := s.answers.Load(), s.next.Add(1)
	if all == nil || n > int64(len(*all)) {
		return nil, false
	}
	return encoded{[][]byte{(*all)[n-1]}}, true
}

// connect opens a session with the server.
func (s *script) connect(tb testing.TB) *etcd.Session {
	tb.Helper()
	s.answers.Store(nil)
	cfg, err := clientfile.New("http://script:2379")
	must(tb, err)
	o := etcd.DefaultOptions()
	o.QPS, o.BootstrapQPS, o.PageLimit = 0, 0, 3
	o.Timings.Page, o.Timings.Read, o.Timings.Write = time.Second, time.Second, time.Second
	o.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) { return s.pipe.DialContext(ctx) }
	e, err := etcd.Connect(context.Background(), cfg, 0, o)
	must(tb, err)
	return e
}

// The calls that are answered by a script.
const (
	callList = iota
	callWatch
	callRecall
	callGet
	callUpdate
	callProbe
	calls
)

// FuzzResponses: no answer of a server, with any bytes, causes a panic, and the results that the session returns obey
// the rules: keys are within the range, a list ascends and has no larger pages than requested, and revisions are
// plausible.
func FuzzResponses(f *testing.F) {
	seeds(f)
	s := newScript(f)
	var e *etcd.Session
	f.Cleanup(func() {
		if e != nil {
			e.Close()
		}
	})
	f.Fuzz(func(t *testing.T, call uint8, first, second []byte) {
		if e == nil {
			e = s.connect(t)
		}
		s.next.Store(0)
		s.answers.Store(&[][]byte{first, second})
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err := ask(ctx, t, e, call%calls)
		s.answers.Store(nil)
		if err != nil { // the session may be over
			e.Close()
			e = nil
		}
	})
}

// ask makes one call and checks its result.
func ask(ctx context.Context, t *testing.T, e *etcd.Session, call uint8) error {
	t.Helper()
	at := kvstore.Position{ClusterID: 0xf00, Revision: 5}
	switch call {
	case callList:
		var last []byte
		pos, err := e.List(ctx, "p/", func(p kvstore.Page) error {
			if len(p.Items) == 0 || len(p.Items) > 3 || p.Left < 0 {
				t.Errorf("a page of %d keys, with %d left", len(p.Items), p.Left)
			}
			last = inOrder(t, p.Items, last, p.At.Revision)
			return nil
		})
		sensible(t, pos, err)
		return err
	case callWatch:
		st, err := e.Watch(ctx, "p/", at)
		if err != nil {
			return err
		}
		defer st.Close()
		return received(t, st, at)
	case callRecall:
		past, err := e.Recall(ctx, "p/", "p/a", at, 3)
		if len(past.Items) > 3 || past.Count < int64(len(past.Items)) {
			t.Errorf("%d keys of %d, at most 3 were asked for", len(past.Items), past.Count)
		}
		inOrder(t, past.Items, nil, at.Revision)
		return err
	case callGet:
		kv, pos, err := e.Get(ctx, "p/a")
		if kv != nil && string(kv.Key) != "p/a" {
			t.Errorf("asked for p/a, got %q", kv.Key)
		}
		sensible(t, pos, err)
		return err
	case callUpdate:
		res, err := e.Update(ctx, []kvstore.Write{{Key: "q/a", Value: []byte("1")}, {Key: "q/b", Delete: true}})
		sensible(t, res.At, err)
		return err
	default:
		pos, err := e.Head(ctx)
		sensible(t, pos, err)
		return err
	}
}

// inOrder checks the returned keys, and returns the last one.
func inOrder(t *testing.T, items []kvstore.KeyValue, last []byte, upTo int64) []byte {
	t.Helper()
	for _, kv := range items {
		switch {
		case !bytes.HasPrefix(kv.Key, []byte("p/")):
			t.Errorf("the key %q is not below p/", kv.Key)
		case last != nil && bytes.Compare(kv.Key, last) <= 0:
			t.Errorf("the key %q comes after %q", kv.Key, last)
		case kv.ModRevision < 1 || kv.ModRevision > upTo:
			t.Errorf("the key %q is of revision %d, as of %d", kv.Key, kv.ModRevision, upTo)
		}
		last = bytes.Clone(kv.Key)
	}
	return last
}

func received(t *testing.T, st kvstore.Stream, at kvstore.Position) error {
	t.Helper()
	for {
		b, err := st.Recv()
		if err != nil {
			return err
		}
		if b.At.ClusterID != at.ClusterID || b.At.Revision < at.Revision || b.At.Revision == math.MaxInt64 {
			t.Errorf("a batch brings the position from %v to %v", at, b.At)
		}
		before := at.Revision
		for _, ev := range b.Events {
			if !bytes.HasPrefix(ev.Key, []byte("p/")) || ev.ModRevision <= at.Revision || ev.ModRevision < before {
				t.Errorf("an event of %q at revision %d, after %d and %d", ev.Key, ev.ModRevision, at.Revision, before)
			}
			before = ev.ModRevision
		}
		if !b.Partial && len(b.Events) > 0 && b.At.Revision < before {
			t.Errorf("after an event of revision %d the position is %d", before, b.At.Revision)
		}
		at = b.At
	}
}

func sensible(t *testing.T, at kvstore.Position, err error) {
	t.Helper()
	if err != nil {
		if (at != kvstore.Position{}) {
			t.Errorf("a position %v with an error", at)
		}
		return
	}
	if at.ClusterID != 0xf00 || at.Revision < 1 || at.Revision == math.MaxInt64 {
		t.Errorf("the position is %v", at)
	}
}

// seeds are valid answers, and answers that break a rule.
func seeds(f *testing.F) {
	h := func(rev int64) *pb.ResponseHeader {
		return &pb.ResponseHeader{ClusterId: 0xf00, MemberId: 1, Revision: rev}
	}
	kv := func(k string, rev int64) *mvccpb.KeyValue {
		return &mvccpb.KeyValue{Key: []byte(k), Value: []byte("v"), CreateRevision: rev, ModRevision: rev, Version: 1}
	}
	page := func(rev, count int64, more bool, kvs ...*mvccpb.KeyValue) []byte {
		return bytesOf(&pb.RangeResponse{Header: h(rev), Kvs: kvs, More: more, Count: count})
	}
	watch := func(rev int64, evs ...*mvccpb.Event) []byte {
		return bytesOf(&pb.WatchResponse{Header: h(rev), Events: evs})
	}
	put := func(k string, rev int64) *mvccpb.Event { return &mvccpb.Event{Kv: kv(k, rev)} }
	full := page(10, 4, true, kv("p/a", 2), kv("p/b", 3), kv("p/c", 10))
	for _, second := range [][]byte{
		page(10, 1, false, kv("p/d", 4)), page(10, 1, false, kv("p/a", 4)), page(10, 1, false, kv("p", 4)), page(10, 1, false, new(mvccpb.KeyValue)),
		page(10, 0, true), page(9, 1, false, kv("p/d", 4)), page(math.MaxInt64, 1, false, kv("p/d", math.MaxInt64)), nil,
		{0x12, 0},
		{0xff},
	} {
		f.Add(uint8(callList), full, second)
		for call := range uint8(calls) {
			f.Add(call, second, full)
		}
	}
	for _, a := range [][]byte{
		watch(12, put("p/a", 12)), watch(12), watch(0), watch(math.MaxInt64), watch(12, put("p", 12)), watch(12, new(mvccpb.Event)),
		watch(12, put("p/a", 12), put("p/b", 11)), watch(11, put("p/a", 12)), watch(12, put("p/a", 3)), watch(12, &mvccpb.Event{Type: 9, Kv: kv("p/a", 12)}),
		bytesOf(&pb.WatchResponse{Header: h(12), Created: true}), bytesOf(&pb.WatchResponse{Header: h(12), Canceled: true, CompactRevision: 11}),
		bytesOf(&pb.WatchResponse{Header: h(12), Fragment: true, Events: []*mvccpb.Event{put("p/a", 12)}}),
		{0x5a, 0},
	} {
		f.Add(uint8(callWatch), a, watch(13, put("p/z", 13)))
	}
	range1 := &pb.ResponseOp{Response: &pb.ResponseOp_ResponseRange{ResponseRange: &pb.RangeResponse{}}}
	put1 := &pb.ResponseOp{Response: &pb.ResponseOp_ResponsePut{ResponsePut: &pb.PutResponse{}}}
	for _, ops := range [][]*pb.ResponseOp{nil, {put1}, {range1}, {put1, put1}, {{}, {}}, {put1, range1, put1}} {
		for _, yes := range []bool{true, false} {
			f.Add(uint8(callUpdate), bytesOf(&pb.TxnResponse{Header: h(12), Succeeded: yes, Responses: ops}), []byte(nil))
		}
	}
}
