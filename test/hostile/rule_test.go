package hostile

import (
	"bytes"
	"context"
	"math"
	"net"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// rule is one way in which a server is hostile. Functions that are nil leave honest answers unchanged.
type rule struct {
	name string
	// want are codes of which one is shown sooner or later; empty: every state of the cluster is allowed, as long as
	// the others are not affected.
	want []codes.Code

	instead    func() (answer any, ok bool) // the answer to a unary call, in place of the honest one
	ranged     func(ctx context.Context, s *server, q *pb.RangeRequest, a *pb.RangeResponse) (any, error)
	watched    func(ctx context.Context, s *server, w *watched, a *pb.WatchResponse) ([]any, error)
	flood      func(ctx context.Context, s *server, w *watched, send func(any) error) error
	status     func(ctx context.Context, s *server, a *pb.StatusResponse) (any, error)
	transacted func(a *pb.TxnResponse) any
	leased     func(a any) any
	conn       func(c net.Conn)
}

// Codes that a hostile server leads to.
func breaks() []codes.Code { return []codes.Code{codes.ProtocolBroken} }

// another has the codes of a session whose server has changed, which is followed by a new session.
func another() []codes.Code {
	return append(breaks(), codes.NotConnectedYet, codes.ConnectionLost)
}

func rules() []*rule {
	return slices.Concat(listRules(), headerRules(), configRules(), watchRules(), silenceRules(), connRules())
}

// reads is a rule about the answers to some reads: the result of spoil is sent.
func reads(name string, want []codes.Code, of func(*pb.RangeRequest) bool, spoil func(*pb.RangeRequest, *pb.RangeResponse) (any, error)) *rule {
	return &rule{name: name, want: want, ranged: func(_ context.Context, s *server, q *pb.RangeRequest, a *pb.RangeResponse) (any, error) {
		if !of(q) {
			return a, nil
		}
		s.spoilt()
		return spoil(q, a)
	}}
}

func every(*pb.RangeRequest) bool { return true }

func ofConfiguration(q *pb.RangeRequest) bool { return about(q, "cilium/cluster-config/") }

// page is a rule about the pages of the key families.
func page(name string, want []codes.Code, spoil func(q *pb.RangeRequest, a *pb.RangeResponse)) *rule {
	return reads("list: "+name, want, lists, func(q *pb.RangeRequest, a *pb.RangeResponse) (any, error) {
		spoil(q, a)
		return a, nil
	})
}

// key is an entry with this key.
func key(k string) *mvccpb.KeyValue {
	return &mvccpb.KeyValue{Key: []byte(k), Value: []byte("x"), CreateRevision: 2, ModRevision: 2, Version: 1}
}

func listRules() []*rule {
	add := func(k string) func(*pb.RangeRequest, *pb.RangeResponse) {
		return func(_ *pb.RangeRequest, a *pb.RangeResponse) { a.Kvs = append(a.Kvs, key(k)) }
	}
	return []*rule{
		page("a foreign key", breaks(), add("cilium/zzz/foreign")),
		page("a foreign key first", breaks(), func(_ *pb.RangeRequest, a *pb.RangeResponse) {
			a.Kvs = slices.Insert(a.Kvs, 0, key("cilium/aaa/foreign"))
		}),
		page("a short key", breaks(), add("c")),
		page("an empty key", breaks(), add("")),
		page("an entry of nothing", breaks(), func(_ *pb.RangeRequest, a *pb.RangeResponse) {
			a.Kvs = append(a.Kvs, new(mvccpb.KeyValue))
		}),
		page("the end of the range", breaks(), func(q *pb.RangeRequest, a *pb.RangeResponse) {
			a.Kvs = append(a.Kvs, key(string(q.RangeEnd)))
		}),
		page("unsorted", breaks(), func(_ *pb.RangeRequest, a *pb.RangeResponse) { slices.Reverse(a.Kvs) }),
		page("a repeated key", breaks(), func(_ *pb.RangeRequest, a *pb.RangeResponse) {
			if n := len(a.Kvs); n > 0 {
				a.Kvs = append(a.Kvs, a.Kvs[n-1])
			}
		}),
		page("the same page again and again", breaks(), func(q *pb.RangeRequest, a *pb.RangeResponse) {
			a.Kvs, a.More = []*mvccpb.KeyValue{key(prefixOf(q.Key) + "0")}, true
		}),
		page("an empty page with more", breaks(), func(_ *pb.RangeRequest, a *pb.RangeResponse) { a.Kvs, a.More = nil, true }),
		page("more keys than asked for", breaks(), func(q *pb.RangeRequest, a *pb.RangeResponse) {
			a.Kvs = nil
			for i := range q.Limit + 1 {
				a.Kvs = append(a.Kvs, key(prefixOf(q.Key)+"k"+string(rune('A'+i/26))+string(rune('A'+i%26))))
			}
		}),
		page("a negative count", nil, func(_ *pb.RangeRequest, a *pb.RangeResponse) { a.Count = -5 }),
		page("the least count", nil, func(_ *pb.RangeRequest, a *pb.RangeResponse) { a.Count = math.MinInt64 }),
		page("a huge count", nil, func(_ *pb.RangeRequest, a *pb.RangeResponse) { a.Count = math.MaxInt64 }),
		page("an entry from the future", breaks(), func(_ *pb.RangeRequest, a *pb.RangeResponse) {
			each(a, func(kv *mvccpb.KeyValue) { kv.ModRevision = math.MaxInt64 })
		}),
		page("an entry without a revision", breaks(), func(_ *pb.RangeRequest, a *pb.RangeResponse) {
			each(a, func(kv *mvccpb.KeyValue) { kv.ModRevision = 0 })
		}),
		page("an entry of a negative revision", breaks(), func(_ *pb.RangeRequest, a *pb.RangeResponse) {
			each(a, func(kv *mvccpb.KeyValue) { kv.ModRevision = -1 })
		}),
		reads("list: compacted, always", nil, lists, func(*pb.RangeRequest, *pb.RangeResponse) (any, error) {
			return nil, rpctypes.ErrGRPCCompacted
		}),
	}
}

func each(a *pb.RangeResponse, f func(*mvccpb.KeyValue)) {
	for _, kv := range a.Kvs {
		f(kv)
	}
}

func prefixOf(k []byte) string { return string(k[:bytes.LastIndexByte(k, '/')+1]) }

// header is a rule about the headers of the answers to reads.
func header(name string, want []codes.Code, spoil func(*pb.ResponseHeader) *pb.ResponseHeader) []*rule {
	in := func(where string, of func(*pb.RangeRequest) bool) *rule {
		return reads("header: "+name+" in "+where, want, of, func(_ *pb.RangeRequest, a *pb.RangeResponse) (any, error) {
			a.Header = spoil(a.Header)
			return a, nil
		})
	}
	return []*rule{in("all reads", every), in("lists", lists)}
}

func headerRules() []*rule {
	revision := func(to int64) func(*pb.ResponseHeader) *pb.ResponseHeader {
		return func(h *pb.ResponseHeader) *pb.ResponseHeader { h.Revision = to; return h }
	}
	all := slices.Concat(
		header("none", another(), func(*pb.ResponseHeader) *pb.ResponseHeader { return nil }),
		header("revision 0", another(), revision(0)),
		header("a negative revision", another(), revision(-7)),
		header("the highest revision", another(), revision(math.MaxInt64)),
	)
	other := reads("header: another cluster's in lists", another(), lists, func(_ *pb.RangeRequest, a *pb.RangeResponse) (any, error) {
		a.Header.ClusterId++
		return a, nil
	})
	back := &rule{name: "header: the revision goes back", want: another(), ranged: func(_ context.Context, s *server, q *pb.RangeRequest, a *pb.RangeResponse) (any, error) {
		a.Header.Revision = max(1, a.Header.Revision-s.broken.Add(1))
		return a, nil
	}}
	status := func(name string, change func(*pb.StatusResponse)) *rule {
		return &rule{name: "status: " + name, status: func(_ context.Context, s *server, a *pb.StatusResponse) (any, error) {
			s.spoilt()
			change(a)
			return a, nil
		}}
	}
	return append(all, other, back,
		status("no header", func(a *pb.StatusResponse) { a.Header = nil }),
		status("another cluster's header", func(a *pb.StatusResponse) { a.Header.ClusterId = 7 }),
		status("no version", func(a *pb.StatusResponse) { a.Version = "\x00\xff.." }),
		status("a version of numbers too large", func(a *pb.StatusResponse) { a.Version = "99999999999999999999.-1.1" }),
		status("negative sizes", func(a *pb.StatusResponse) { a.DbSize, a.DbSizeInUse, a.DbSizeQuota = -1, math.MinInt64, -1 }),
		status("ten thousand alarms", func(a *pb.StatusResponse) { a.Errors = slices.Repeat([]string{"alarm"}, 10_000) }),
	)
}

// configRules are about the key that determines what to read.
func configRules() []*rule {
	config := func(name string, spoil func(*pb.RangeRequest, *pb.RangeResponse)) *rule {
		return reads("config: "+name, breaks(), ofConfiguration, func(q *pb.RangeRequest, a *pb.RangeResponse) (any, error) {
			spoil(q, a)
			return a, nil
		})
	}
	return []*rule{
		config("of another cluster", func(_ *pb.RangeRequest, a *pb.RangeResponse) {
			each(a, func(kv *mvccpb.KeyValue) { kv.Key = []byte("cilium/cluster-config/other") })
		}),
		config("under an empty key", func(_ *pb.RangeRequest, a *pb.RangeResponse) { each(a, func(kv *mvccpb.KeyValue) { kv.Key = nil }) }),
		config("twice", func(_ *pb.RangeRequest, a *pb.RangeResponse) { a.Kvs = append(a.Kvs, a.Kvs...) }),
		config("and more, without an end", func(q *pb.RangeRequest, a *pb.RangeResponse) {
			a.Kvs, a.More = []*mvccpb.KeyValue{key(string(q.Key))}, true
		}),
	}
}
