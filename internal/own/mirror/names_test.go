package mirror

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func TestNames(t *testing.T) {
	t.Parallel()
	for name, good := range map[string]bool{
		"node-1": true, "cluster/node-1": true, "ns/name": true, "10.0.0.1": true, "fd00::1": true, "10.0.0.0/24": true, "16777300": true,
		"...": true, "..a/b": true, "ü/名": true,
		"": false, "/": false, "/a": false, "a/": false, "a//b": false, ".": false, "..": false, "../x": false, "a/../b": false, "a/.": false,
		"a\x00b": false, "a\nb": false, "\x7f": false,
	} {
		var refused *wire.RejectError
		switch err := checkName(name); {
		case (err == nil) != good:
			t.Errorf("%q: %v", name, err)
		case !good && (!errors.As(err, &refused) || refused.Reason != wire.ReasonKey):
			t.Errorf("%q is refused for another reason: %v", name, err)
		}
	}
}

// hostile is a remote's etcd that says what it likes.
type hostile struct {
	kvstore.Client
	listed, again []kvstore.KeyValue // what lists have: the first one, and those after it
	events        []kvstore.Event
	lists         int
}

func (h *hostile) List(_ context.Context, _ string, page func(kvstore.Page) error, _ ...kvstore.ReadOption) (kvstore.Position, error) {
	items := h.listed
	if h.lists++; h.lists > 1 {
		items = h.again
	}
	at := kvstore.Position{ClusterID: 1, Revision: 10}
	return at, page(kvstore.Page{Items: items, At: at})
}

func (h *hostile) Watch(ctx context.Context, _ string, _ kvstore.Position, _ ...kvstore.SelectOption) (kvstore.Stream, error) {
	return &hostileStream{ctx: ctx, events: h.events}, nil
}

type hostileStream struct {
	ctx    context.Context
	events []kvstore.Event
	sent   bool
}

func (s *hostileStream) Recv() (kvstore.Batch, error) {
	if !s.sent {
		s.sent = true
		return kvstore.Batch{Events: s.events, At: kvstore.Position{ClusterID: 1, Revision: 20}}, nil
	}
	<-s.ctx.Done()
	return kvstore.Batch{}, s.ctx.Err()
}
func (s *hostileStream) RequestProgress() error { return nil }
func (s *hostileStream) Close()                 {}

// TestNothingIsWrittenOutside: for any keys in a remote's lists, events and further reads, all written keys are below
// the prefix of their family and cluster, and stay there for readers that use keys as paths.
func TestNothingIsWrittenOutside(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := rapid.SampledFrom(wire.Resources()).Draw(t, "resource")
		cached := rapid.Bool().Draw(t, "cached")
		from, to := r.Prefix("c1", cached), r.Prefix("c1", true)
		part := rapid.OneOf(
			rapid.SampledFrom([]string{"", "/", "..", ".", "../../../../c2", "cilium/cache/nodes/v1/c2/x", "\x00", "a", "ns/name", "10.0.0.1", "\xff"}),
			rapid.StringN(0, 8, -1), rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 8), func(b []byte) string { return string(b) }))
		key := rapid.Map(rapid.SliceOfN(part, 0, 4), func(parts []string) string { return from + strings.Join(parts, "/") })
		if rapid.Bool().Draw(t, "foreign") { // as long as the prefix at least: a shorter key ends the session before
			key = rapid.Map(rapid.SliceOfN(rapid.Byte(), len(from), len(from)+12), func(b []byte) string { return string(b) })
		}
		kv := rapid.Map(key, func(k string) kvstore.KeyValue {
			return kvstore.KeyValue{Key: []byte(k), Value: []byte("v"), ModRevision: 15}
		})
		short := rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, len(from)), func(b []byte) kvstore.KeyValue { return kvstore.KeyValue{Key: b, Value: []byte("v")} })
		h := &hostile{
			listed: rapid.SliceOfN(kv, 0, 10).Draw(t, "listed"), again: rapid.SliceOfN(rapid.OneOf(kv, short), 0, 10).Draw(t, "again"),
			events: rapid.SliceOfN(rapid.Map(kv, func(kv kvstore.KeyValue) kvstore.Event { return kvstore.Event{Type: kvstore.EventPut, KeyValue: kv} }), 0, 10).Draw(t, "events"),
		}
		for _, key := range h.copied(t, r, from) {
			name, below := strings.CutPrefix(key, to)
			if !below || name == "" || wire.Join(key) != key || checkName(name) != nil {
				t.Fatalf("%q was written for %s", key, r)
			}
		}
	})
}

// newFamily is a family of c1 and what writes it into our own kvstore.
func newFamily(own kvstore.Writer, r wire.Resource) (*family, *syncstore.Outbox) {
	log := slog.New(slog.DiscardHandler)
	t := &term{Mirror: &Mirror{Params: Params{Params: clustermesh.Params{Log: log}}}, outbox: syncstore.NewOutbox(own, nil, nil, nil)}
	return (&copyOf{term: t, name: "c1", log: log}).newFamily(r, nil), t.outbox
}

// start runs a family with all that it needs.
func (f *family) start(ctx context.Context, own *memory.Store, outbox *syncstore.Outbox, s store.Session) *errgroup.Group {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return own.Run(ctx, nil) })
	g.Go(func() error { return outbox.Run(ctx) })
	g.Go(func() error { return f.sync.Run(ctx) })
	g.Go(func() error { return f.Run(ctx, s) })
	return g
}

// copied runs a copy of one family, and returns the keys in our own kvstore afterwards.
func (h *hostile) copied(t *rapid.T, r wire.Resource, from string) (keys []string) {
	own := memory.New()
	defer own.Close()
	f, outbox := newFamily(own, r)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	g := f.start(ctx, own, outbox, store.Session{Client: h, Prefix: from})
	must(t, f.watch.Reach(ctx, kvstore.Position{ClusterID: 1, Revision: 20}))
	_ = f.read(ctx, store.Session{Client: h, Prefix: from}, h.everyName(from))
	must(t, f.sync.WaitClean(ctx))
	if _, err := own.List(ctx, "cilium/", func(p kvstore.Page) error {
		for _, kv := range p.Items {
			keys = append(keys, string(kv.Key))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := g.Wait(); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return keys
}

// everyName are so many names that they are read by a list.
func (h *hostile) everyName(from string) map[string]struct{} {
	names := make(map[string]struct{})
	for i := range fewNames + 1 {
		names[strings.Repeat("n", i+1)] = struct{}{}
	}
	for _, kv := range h.again {
		names[strings.TrimPrefix(string(kv.Key), from)] = struct{}{}
	}
	return names
}

// flaky is a remote's etcd of which some reads fail.
type flaky struct {
	*memory.Store
	fails chan error // for each element a read does
}

func (f *flaky) Get(ctx context.Context, key string, opts ...kvstore.ReadOption) (*kvstore.KeyValue, kvstore.Position, error) {
	select {
	case err := <-f.fails:
		return nil, kvstore.Position{}, err
	default:
		return f.Store.Get(ctx, key, opts...)
	}
}

// TestAReadThatFailsIsRepeated, and does not end the session of the remote.
func TestAReadThatFailsIsRepeated(t *testing.T) {
	t.Parallel()
	own, remote := memory.New(), &flaky{Store: memory.New(), fails: make(chan error, 2)}
	defer own.Close()
	defer remote.Close()
	f, outbox := newFamily(own, wire.Nodes)
	ctx, cancel := context.WithCancel(t.Context())
	remote.Set(wire.Nodes.Key("c1", false, "n1"), "v")
	g := f.start(ctx, own, outbox, store.Session{Client: remote, Prefix: wire.Nodes.Prefix("c1", false)})
	must(t, f.sync.WaitClean(ctx))
	remote.fails <- errors.New("busy")
	remote.fails <- errors.New("busy")
	there := func() bool {
		kv, _, err := own.Get(ctx, wire.Nodes.Key("c1", true, "n1"))
		return err == nil && kv != nil
	}
	own.Unset(wire.Nodes.Key("c1", true, "n1")) // so that its value is needed again
	waittest.Until(t, "the value to be back", func() bool { return len(remote.fails) == 0 && there() })
	if f.running.TryLock() {
		t.Error("the session of the remote has ended")
	}
	cancel()
	if err := g.Wait(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
