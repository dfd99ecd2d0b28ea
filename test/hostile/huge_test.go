package hostile

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

const mib = 1 << 20

// message is an answer in parts. Its large parts are all the same buffer, so that
// it costs no memory here.
type message struct{ parts [][]byte }

// blank is the contents of large values.
func blank() []byte { return bytes.Repeat([]byte{'{'}, mib) }

// add appends one or several encoded fields.
func (m *message) add(b []byte) { m.parts = append(m.parts, b) }

// large appends a field of bytes, of this many MiB.
func (m *message) large(field protowire.Number, size int, block []byte) {
	m.add(protowire.AppendVarint(protowire.AppendTag(nil, field, protowire.BytesType), uint64(size)*mib))
	for range size {
		m.add(block)
	}
}

// nested begins a field whose contents are the bytes of head and this many MiB as the value of an inner field.
func (m *message) nested(field, inner protowire.Number, head []byte, size int, block []byte) {
	tail := protowire.AppendVarint(protowire.AppendTag(nil, inner, protowire.BytesType), uint64(size)*mib)
	n := uint64(len(head) + len(tail) + size*mib)
	m.add(append(append(protowire.AppendVarint(protowire.AppendTag(nil, field, protowire.BytesType), n), head...), tail...))
	for range size {
		m.add(block)
	}
}

// entry is the head of a KeyValue; its value has to be appended as field 5.
func entry(key string, rev int64) []byte {
	return bytesOf(&mvccpb.KeyValue{Key: []byte(key), CreateRevision: rev, ModRevision: rev, Version: 1})
}

// withHeader begins a message with a good header.
func withHeader(h *pb.ResponseHeader) *message {
	m := new(message)
	m.add(protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), bytesOf(h)))
	return m
}

// hugePage is a page with this many entries, each with a value of this many MiB.
func hugePage(q *pb.RangeRequest, h *pb.ResponseHeader, entries, size int, block []byte) any {
	m, prefix := withHeader(h), prefixOf(q.Key)
	for i := range entries {
		m.nested(2, 5, entry(fmt.Sprintf("%sbig%06d", prefix, i), 2), size, block)
	}
	m.add(bytesOf(&pb.RangeResponse{Count: int64(entries)}))
	return encoded{m.parts}
}

// hugeRules are servers whose answers are too large. The smallest page that a client can request has a single key, and
// they ignore the limit: an answer above the bound breaks the protocol.
func hugeRules() []*rule {
	block, empty := blank(), bytes.Repeat([]byte{0x12, 0}, 1_000_000)
	pages := func(entries, size int, want ...codes.Code) *rule {
		return reads(fmt.Sprintf("pages of %d values of %d MiB", entries, size), want, lists, func(q *pb.RangeRequest, a *pb.RangeResponse) (any, error) {
			return hugePage(q, a.Header, entries, size, block), nil
		})
	}
	read := func(name string, of func(*pb.RangeRequest) bool, with func(q *pb.RangeRequest, a *pb.RangeResponse, m *message)) *rule {
		return reads(name, breaks(), of, func(q *pb.RangeRequest, a *pb.RangeResponse) (any, error) {
			m := withHeader(a.Header)
			with(q, a, m)
			return encoded{m.parts}, nil
		})
	}
	return []*rule{
		pages(1, 2), pages(1, 20, breaks()...), pages(1, 256, breaks()...),
		pages(12, 1, breaks()...), pages(50, 1, breaks()...), pages(50, 5, breaks()...),
		read("a million empty entries in a page", lists, func(_ *pb.RangeRequest, _ *pb.RangeResponse, m *message) {
			m.add(empty)
		}),
		read("a hundred million empty entries in a page", lists, func(_ *pb.RangeRequest, _ *pb.RangeResponse, m *message) {
			for range 100 {
				m.add(empty)
			}
		}),
		read("unknown fields of 200 MiB in each answer", every, func(_ *pb.RangeRequest, a *pb.RangeResponse, m *message) {
			m.large(100, 200, block)
			m.add(bytesOf(a))
		}),
		read("a configuration of 100 MiB", ofConfiguration, func(q *pb.RangeRequest, _ *pb.RangeResponse, m *message) {
			m.nested(2, 5, entry(string(q.Key), 2), 100, block)
		}),
		read("keys of 7 MiB", lists, func(q *pb.RangeRequest, a *pb.RangeResponse, m *message) {
			k := append(slices.Clone(q.Key), bytes.Repeat([]byte{'k'}, 7*mib)...)
			m.add(bytesOf(&pb.RangeResponse{Kvs: []*mvccpb.KeyValue{{Key: k, ModRevision: 2, CreateRevision: 2, Version: 1}}}))
		}),
		{name: "events of 256 MiB", want: breaks(), flood: flooding(func(w *watched, h *pb.ResponseHeader) any {
			m := withHeader(h)
			ev := entry(string(w.key)+"big", h.Revision)
			tail := protowire.AppendVarint(protowire.AppendTag(nil, 5, protowire.BytesType), 256*mib)
			kv := uint64(len(ev) + len(tail) + 256*mib)
			head := protowire.AppendVarint(protowire.AppendTag(nil, 2, protowire.BytesType), kv)
			m.add(protowire.AppendVarint(protowire.AppendTag(nil, 11, protowire.BytesType), uint64(len(head))+kv))
			m.add(slices.Concat(head, ev, tail))
			for range 256 {
				m.add(block)
			}
			return encoded{m.parts}
		})},
		{name: "a million empty events in an answer", want: breaks(), flood: flooding(func(_ *watched, h *pb.ResponseHeader) any {
			m := withHeader(h)
			m.add(bytes.Repeat([]byte{0x5a, 0}, 1_000_000))
			return encoded{m.parts}
		})},
		{name: "a reason of 200 MiB to cancel a watch", want: breaks(), flood: flooding(func(_ *watched, h *pb.ResponseHeader) any {
			m := withHeader(h)
			m.add(bytesOf(&pb.WatchResponse{Canceled: true}))
			m.large(6, 200, block)
			return encoded{m.parts}
		})},
		{name: "a version of 200 MiB", status: func(_ context.Context, s *server, a *pb.StatusResponse) (any, error) {
			s.spoilt()
			m := withHeader(a.Header)
			m.large(2, 200, block)
			return encoded{m.parts}, nil
		}},
	}
}

// flooding sends these answers for as long as the watch of a key family lasts.
func flooding(one func(*watched, *pb.ResponseHeader) any) func(context.Context, *server, *watched, func(any) error) error {
	return func(ctx context.Context, s *server, w *watched, send func(any) error) error {
		for w.families() && ctx.Err() == nil {
			if err := send(one(w, s.header())); err != nil {
				return err
			}
		}
		return nil
	}
}

// TestHuge: with answers of any size, memory stays within its bound, and other clusters are not affected.
func TestHuge(t *testing.T) {
	waittest.Long(t)
	w := newWorld(t)
	for i, r := range hugeRules() {
		t.Run(r.name, func(t *testing.T) {
			heap := watchHeap(t)
			c, s := w.hostileCluster(t)
			s.breaks(r)
			w.join(c, s.endpoint())
			t.Cleanup(func() { w.gone(t, c) })
			w.until(t, "the server to break its rule", func() bool { return s.broken.Load() > 0 })
			if len(r.want) > 0 {
				w.shows(t, c, r.want)
			}
			w.tried(t, c)
			w.sentinel(t, i+2)
			t.Logf("shown: %v", w.codesOf(c))
			heap.check(t)
		})
	}
}

// tried waits until the cluster is synced, or three sessions have ended.
func (w *world) tried(tb testing.TB, c *cluster) {
	tb.Helper()
	began := time.Now()
	w.until(tb, "the session to come to something", func() bool {
		st, _ := w.status(c.name)
		return st.Failures >= 3 || st.State == remotecluster.Ready || time.Since(began) > 5*time.Second
	})
}

// gone removes a cluster from the mesh and waits until none of its data is left.
func (w *world) gone(tb testing.TB, c *cluster) {
	tb.Helper()
	w.leave(c)
	w.until(tb, c.name+" to be gone", func() bool { _, there := w.status(c.name); return !there && len(w.shown(c.name)) == 0 })
}
