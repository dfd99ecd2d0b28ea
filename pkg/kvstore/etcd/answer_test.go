package etcd

import (
	"context"
	"math"
	"runtime"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/kvtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// key is a valid key.
func key(k string, rev int64) *mvccpb.KeyValue {
	return &mvccpb.KeyValue{Key: []byte(k), ModRevision: rev, CreateRevision: rev, Version: 1}
}

// TestPagesThatBreakARule: each page ends the session, and no part of the page is delivered.
func TestPagesThatBreakARule(t *testing.T) {
	t.Parallel()
	page := func(count int64, more bool, kvs ...*mvccpb.KeyValue) *pb.RangeResponse {
		return &pb.RangeResponse{Header: header(10), Count: count, More: more, Kvs: kvs}
	}
	for name, c := range map[string]struct {
		page *pb.RangeResponse
		says string
	}{
		"a foreign key":                  {page(1, false, key("q/1", 2)), `"q/1"`},
		"a key shorter than the prefix":  {page(1, false, key("p", 2)), `"p"`},
		"an empty key":                   {page(1, false, &mvccpb.KeyValue{ModRevision: 2}), `""`},
		"a long foreign key":             {page(1, false, key(strings.Repeat("x", 1<<20), 2)), "1048576 bytes"},
		"keys out of order":              {page(2, false, key("p/2", 2), key("p/1", 2)), `"p/1" of a page comes after "p/2"`},
		"a key twice":                    {page(2, false, key("p/1", 2), key("p/1", 2)), "comes after"},
		"more keys than asked for":       {page(3, false, key("p/1", 2), key("p/2", 2), key("p/3", 2)), "at most 2"},
		"more, and nothing":              {page(9, true), "room"},
		"more, and room left":            {page(9, true, key("p/1", 2)), "room"},
		"more than is counted":           {page(2, true, key("p/1", 2), key("p/2", 2)), "counts"},
		"counts less than there are":     {page(1, false, key("p/1", 2), key("p/2", 2)), "counts 1"},
		"counts below zero":              {page(math.MinInt64, false), "counts"},
		"a revision from the future":     {page(1, false, key("p/1", 11)), "revision 11"},
		"a key without a revision":       {page(1, false, key("p/1", 0)), "revision 0"},
		"a revision below zero":          {page(1, false, key("p/1", -5)), "revision -5"},
		"a revision beyond all that are": {page(1, false, key("p/1", math.MaxInt64)), "revision 9223372036854775807"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := quick()
			o.PageLimit = 2
			e := respond(func(*pb.RangeRequest) *pb.RangeResponse { return c.page }).start(t, o)
			_, err := e.List(waittest.Context(t), "p/", func(p kvstore.Page) error {
				t.Errorf("handed on: %+v", p)
				return nil
			})
			kvtest.WantErr(t, err, kvstore.ErrProtocol, c.says)
			if len(err.Error()) > 2*maxServerText {
				t.Errorf("a text of %d bytes", len(err.Error()))
			}
			kvtest.WantErr(t, second(e.Head(waittest.Context(t))), kvstore.ErrProtocol)
		})
	}
}

// TestEventsThatBreakARule: each event ends the session, and no event of the batch is delivered.
func TestEventsThatBreakARule(t *testing.T) {
	t.Parallel()
	events := func(evs ...*mvccpb.Event) *pb.WatchResponse {
		return &pb.WatchResponse{Header: header(20), Events: evs}
	}
	at := func(k string, rev int64) *mvccpb.Event { return &mvccpb.Event{Kv: key(k, rev)} }
	for name, c := range map[string]struct {
		answer *pb.WatchResponse
		says   string
	}{
		"no key":                  {events(&mvccpb.Event{}), "no key"},
		"a foreign key":           {events(at("q/1", 11)), `"q/1"`},
		"a key that is too short": {events(at("p", 11)), `"p"`},
		"an unknown kind":         {events(&mvccpb.Event{Type: 7, Kv: key("p/1", 11)}), "kind 7"},
		"what was reached":        {events(at("p/1", 10)), "up to 10"},
		"revisions backwards":     {events(at("p/1", 13), at("p/2", 12)), "after one of 13"},
		"from the future":         {events(at("p/1", 21)), "is at 20"},
		"confirmed twice":         {confirmed(), "twice"},
		"of another watch":        {&pb.WatchResponse{Header: header(20), WatchId: 9, Events: []*mvccpb.Event{at("p/1", 11)}}, "watch ID 9"},
		"a revision of zero":      {&pb.WatchResponse{Header: header(0)}, "revision of a response is 0"},
		"a huge revision":         {&pb.WatchResponse{Header: header(math.MaxInt64)}, "revision of a response"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := (&fake{watchFn: script(confirmed(), c.answer)}).start(t, quick())
			st := watch(t, e, "p/", position(10))
			b, err := st.Recv()
			if err == nil {
				t.Fatalf("handed on: %+v", b)
			}
			kvtest.WantErr(t, err, kvstore.ErrProtocol, c.says)
			kvtest.WantErr(t, second(e.Head(waittest.Context(t))), kvstore.ErrProtocol)
		})
	}
}

// TestTransactionsThatBreakARule: the answers do not have the parts of the request.
func TestTransactionsThatBreakARule(t *testing.T) {
	t.Parallel()
	read := opToPB(kvstore.TxnOp{Key: "p/1"})
	put := &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte("p/1")}}}
	ranged := func(kvs ...*mvccpb.KeyValue) *pb.ResponseOp {
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseRange{ResponseRange: &pb.RangeResponse{Kvs: kvs, Count: int64(len(kvs))}}}
	}
	written := &pb.ResponseOp{Response: &pb.ResponseOp_ResponsePut{ResponsePut: &pb.PutResponse{}}}
	for name, c := range map[string]struct {
		asked  []*pb.RequestOp
		answer []*pb.ResponseOp
		fine   bool
	}{
		"as asked":           {[]*pb.RequestOp{read, put}, []*pb.ResponseOp{ranged(key("p/1", 5)), written}, true},
		"too few parts":      {[]*pb.RequestOp{read, put}, []*pb.ResponseOp{ranged()}, false},
		"too many":           {[]*pb.RequestOp{put}, []*pb.ResponseOp{written, written}, false},
		"none":               {[]*pb.RequestOp{read}, nil, false},
		"a part of no kind":  {[]*pb.RequestOp{read}, []*pb.ResponseOp{{}}, false},
		"no part":            {[]*pb.RequestOp{put}, []*pb.ResponseOp{nil}, false},
		"of another kind":    {[]*pb.RequestOp{read}, []*pb.ResponseOp{written}, false},
		"about another key":  {[]*pb.RequestOp{read}, []*pb.ResponseOp{ranged(key("p/2", 5))}, false},
		"from the future":    {[]*pb.RequestOp{read}, []*pb.ResponseOp{ranged(key("p/1", 11))}, false},
		"a range of nothing": {[]*pb.RequestOp{read}, []*pb.ResponseOp{{Response: &pb.ResponseOp_ResponseRange{}}}, false},
	} {
		err := checkTxn(&pb.TxnRequest{Success: c.asked}, &pb.TxnResponse{Succeeded: true, Responses: c.answer}, 10)
		if (err == nil) != c.fine {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestMessagesAreCountedBeforeTheyAreBuilt: each part has two bytes on the wire, and more
// than a hundred in memory.
func TestMessagesAreCountedBeforeTheyAreBuilt(t *testing.T) { //nolint:paralleltest // it measures the heap
	waittest.Long(t)
	bomb := func(field protowire.Number) []byte {
		part := protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), nil)
		return []byte(strings.Repeat(string(part), receiveLimit/len(part)))
	}
	wrapped := func(field protowire.Number, message []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), message)
	}
	deep := []byte(nil)
	for range 1000 {
		deep = wrapped(3, wrapped(4, deep))
	}
	codec := newAnswerCodec()
	for name, c := range map[string]struct {
		message []byte
		into    any
	}{
		"keys":                            {bomb(2), new(pb.RangeResponse)},
		"events":                          {bomb(11), new(pb.WatchResponse)},
		"alarms":                          {bomb(8), new(pb.StatusResponse)},
		"parts of a transaction":          {bomb(3), new(pb.TxnResponse)},
		"keys of a transaction":           {wrapped(3, wrapped(1, bomb(2))), new(pb.TxnResponse)},
		"keys that a transaction deleted": {wrapped(3, wrapped(3, bomb(3))), new(pb.TxnResponse)},
		"transactions in transactions":    {deep, new(pb.TxnResponse)},
		"cut off":                         {[]byte{0x12, 0x7f}, new(pb.RangeResponse)},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(c.message)}, c.into)
		runtime.ReadMemStats(&after)
		if cost := after.TotalAlloc - before.TotalAlloc; err == nil || cost > mib {
			t.Errorf("%s: %d bytes in memory, error %v", name, cost, err)
		}
	}
}

// TestGarbageIsNoMessage: bytes that are not protobuf end the session.
func TestGarbageIsNoMessage(t *testing.T) {
	t.Parallel()
	bad := respond(func(*pb.RangeRequest) *pb.RangeResponse {
		r := &pb.RangeResponse{Header: header(10)}
		r.ProtoReflect().SetUnknown([]byte{0x12, 0x7f, 1, 2, 3}) // a key that is longer than the message
		return r
	})
	e := bad.start(t, quick())
	for _, call := range []func(context.Context) error{
		func(ctx context.Context) error { _, _, err := e.Get(ctx, "k"); return err },
		func(ctx context.Context) error { _, err := e.Head(ctx); return err },
	} {
		kvtest.WantErr(t, call(waittest.Context(t)), kvstore.ErrProtocol)
	}
}
