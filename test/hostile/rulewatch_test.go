package hostile

import (
	"context"
	"math"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// families reports whether a watch is for one of the key families.
func (w *watched) families() bool { return strings.HasPrefix(string(w.key), "cilium/state/") }

// events is a rule about answers with events.
func events(name string, want []codes.Code, spoil func(s *server, w *watched, a *pb.WatchResponse)) *rule {
	return answers(name, want, func(s *server, w *watched, a *pb.WatchResponse) []any {
		if len(a.Events) == 0 {
			return []any{a}
		}
		s.spoilt()
		spoil(s, w, a)
		return []any{a}
	})
}

// answers is a rule about all responses of a watch of a key family.
func answers(name string, want []codes.Code, spoil func(s *server, w *watched, a *pb.WatchResponse) []any) *rule {
	return &rule{name: "watch: " + name, want: want, watched: func(_ context.Context, s *server, w *watched, a *pb.WatchResponse) ([]any, error) {
		if !w.families() {
			return []any{a}, nil
		}
		return spoil(s, w, a), nil
	}}
}

// event changes each event of an answer.
func event(f func(a *pb.WatchResponse, e *mvccpb.Event)) func(*server, *watched, *pb.WatchResponse) {
	return func(_ *server, _ *watched, a *pb.WatchResponse) {
		for _, e := range a.Events {
			f(a, e)
		}
	}
}

// bare is an encoded answer with an event that has no entry, of type 0 or 1.
func bare(h *pb.ResponseHeader, kind uint64) any {
	ev := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), kind)
	out := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), bytesOf(h))
	return encoded{[][]byte{protowire.AppendBytes(protowire.AppendTag(out, 11, protowire.BytesType), ev)}}
}

func watchRules() []*rule {
	silent := []codes.Code{codes.NotFollowed, codes.StreamBroken, codes.Copying, codes.ListFails, codes.NotConfirmed}
	keyed := func(k string) func(*server, *watched, *pb.WatchResponse) {
		return event(func(_ *pb.WatchResponse, e *mvccpb.Event) { e.Kv.Key = []byte(k) })
	}
	revised := func(f func(h, own int64) int64) func(*server, *watched, *pb.WatchResponse) {
		return event(func(a *pb.WatchResponse, e *mvccpb.Event) { e.Kv.ModRevision = f(a.Header.Revision, e.Kv.ModRevision) })
	}
	// Progress is sent without a request.
	future := func(name string, want []codes.Code, by func(int64) int64) *rule {
		return answers(name, want, func(s *server, _ *watched, a *pb.WatchResponse) []any {
			if !a.Created {
				return []any{a}
			}
			s.spoilt()
			progress := copyOf(a)
			progress.Created, progress.Header.Revision = false, by(a.Header.Revision)
			return []any{a, progress}
		})
	}
	none := func(name string, kind uint64) *rule {
		return answers(name, breaks(), func(s *server, _ *watched, a *pb.WatchResponse) []any {
			if len(a.Events) == 0 {
				return []any{a}
			}
			s.spoilt()
			return []any{bare(a.Header, kind)}
		})
	}
	after := func(name string, want []codes.Code, more func(s *server, w *watched, a *pb.WatchResponse) []any) *rule {
		return answers(name, want, func(s *server, w *watched, a *pb.WatchResponse) []any {
			if !a.Created {
				return []any{a}
			}
			s.spoilt()
			return more(s, w, a)
		})
	}
	return []*rule{
		none("a put of nothing", 0),
		none("a deletion of nothing", 1),
		events("a foreign key", breaks(), keyed("cilium/zzz/foreign")),
		events("a short key", breaks(), keyed("c")),
		events("an empty key", breaks(), keyed("")),
		events("a short key is deleted", breaks(), event(func(_ *pb.WatchResponse, e *mvccpb.Event) { e.Type, e.Kv.Key = mvccpb.Event_DELETE, []byte("c") })),
		events("an unknown type of event", nil, event(func(_ *pb.WatchResponse, e *mvccpb.Event) { e.Type = 77 })),
		events("revision 0", breaks(), revised(func(int64, int64) int64 { return 0 })),
		events("a negative revision", breaks(), revised(func(int64, int64) int64 { return math.MinInt64 })),
		events("the highest revision", breaks(), revised(func(int64, int64) int64 { return math.MaxInt64 })),
		events("a revision above the header's", breaks(), revised(func(h, _ int64) int64 { return h + 1000 })),
		events("an old revision", breaks(), revised(func(int64, int64) int64 { return 2 })),
		events("revisions that go back", breaks(), func(_ *server, _ *watched, a *pb.WatchResponse) {
			again := copyOf(a.Events[0])
			again.Kv.ModRevision--
			a.Events = append(a.Events, again)
		}),
		events("no header", another(), func(_ *server, _ *watched, a *pb.WatchResponse) { a.Header = nil }),
		events("another cluster's header", another(), func(_ *server, _ *watched, a *pb.WatchResponse) { a.Header.ClusterId++ }),
		events("another watch's ID", nil, func(_ *server, _ *watched, a *pb.WatchResponse) { a.WatchId = 99 }),
		events("fragments without an end", nil, func(_ *server, _ *watched, a *pb.WatchResponse) { a.Fragment = true }),
		future("progress from the future", nil, func(r int64) int64 { return r + 1000 }),
		future("progress from the end of time", another(), func(int64) int64 { return math.MaxInt64 }),
		future("progress at a negative revision", another(), func(int64) int64 { return -1 }),
		after("created twice", nil, func(_ *server, _ *watched, a *pb.WatchResponse) []any { return []any{a, copyOf(a)} }),
		after("created without a header", another(), func(_ *server, _ *watched, a *pb.WatchResponse) []any { a.Header = nil; return []any{a} }),
		after("created by another cluster", another(), func(_ *server, _ *watched, a *pb.WatchResponse) []any { a.Header.ClusterId++; return []any{a} }),
		after("created at no revision", nil, func(_ *server, _ *watched, a *pb.WatchResponse) []any { a.Header.Revision = 0; return []any{a} }),
		after("created at the highest revision", nil, func(_ *server, _ *watched, a *pb.WatchResponse) []any {
			a.Header.Revision = math.MaxInt64
			return []any{a}
		}),
		after("cancelled at once, without a reason", append(breaks(), silent...), func(_ *server, _ *watched, a *pb.WatchResponse) []any {
			a.Canceled = true
			return []any{a}
		}),
		after("compacted at once", nil, func(_ *server, _ *watched, a *pb.WatchResponse) []any {
			return []any{a, &pb.WatchResponse{Header: a.Header, Canceled: true, CompactRevision: math.MaxInt64}}
		}),
		after("compacted at a negative revision", nil, func(_ *server, _ *watched, a *pb.WatchResponse) []any {
			return []any{a, &pb.WatchResponse{Header: a.Header, CompactRevision: -1}}
		}),
		after("events before it is created", append(breaks(), silent...), func(_ *server, w *watched, a *pb.WatchResponse) []any {
			return []any{&pb.WatchResponse{Header: a.Header, Events: []*mvccpb.Event{{Kv: &mvccpb.KeyValue{Key: w.key, ModRevision: 2}}}}, a}
		}),
		after("events after it is cancelled", nil, func(_ *server, w *watched, a *pb.WatchResponse) []any {
			return []any{
				a, &pb.WatchResponse{Header: a.Header, Canceled: true, CancelReason: strings.Repeat("r", 1<<20)},
				&pb.WatchResponse{Header: a.Header, Events: []*mvccpb.Event{{Kv: &mvccpb.KeyValue{Key: w.key, ModRevision: a.Header.Revision}}}},
			}
		}),
		after("garbage in a message", append(breaks(), silent...), func(_ *server, _ *watched, a *pb.WatchResponse) []any {
			return []any{a, encoded{[][]byte{[]byte("\xff\xff\xff\xff no protobuf")}}}
		}),
		after("an empty message", another(), func(_ *server, _ *watched, a *pb.WatchResponse) []any {
			return []any{a, encoded{[][]byte{{}}}}
		}),
		{name: "watch: a flood of progress", flood: func(ctx context.Context, s *server, w *watched, send func(any) error) error {
			for w.families() && ctx.Err() == nil {
				if err := send(&pb.WatchResponse{Header: s.header()}); err != nil {
					return err
				}
			}
			return nil
		}},
	}
}
