package store

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"testing"
	"weak"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// noting is a client that reports whether the last page is still in memory.
type noting struct {
	kvstore.Client
	page weak.Pointer[kvstore.KeyValue]
	key  weak.Pointer[byte]
}

func (c *noting) List(ctx context.Context, prefix string, page func(kvstore.Page) error, opts ...kvstore.ReadOption) (kvstore.Position, error) {
	return c.Client.List(ctx, prefix, func(p kvstore.Page) error {
		c.page, c.key = weak.Make(&p.Items[0]), weak.Make(&p.Items[0].Key[0])
		return page(p)
	}, opts...)
}

// TestAListThatLetsOthersGoFirstHasNoPage: turns bound the pages in memory, so a list
// must not keep the page that it has handled while it waits for its next turn.
func TestAListThatLetsOthersGoFirstHasNoPage(t *testing.T) {
	t.Parallel()
	srv := etcdtest.Start(t)
	srv.Put(t, testPrefix+"a", "1", testPrefix+"b", "2")
	cfg, err := clientfile.New(srv.Endpoint())
	must(t, err)
	session, err := etcd.Connect(t.Context(), cfg, 0, etcd.DefaultOptions())
	must(t, err)
	defer session.Close()

	client, lists := &noting{Client: session}, NewTurns(1)
	other := make(chan error, 1)
	w := NewWatch(Kind[string]{
		Resource: "x",
		Decode:   func(wire.Expect) Decode[string] { return decodeText },
		Apply: func([]Change[string]) {
			go func() { other <- lists.Take(t.Context(), "other") }()
			for !lists.Wanted("c2") {
				runtime.Gosched()
			}
		},
	}, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- w.Run(ctx, Session{Client: client, Prefix: testPrefix, Expect: wire.Expect{Cluster: "c2"}, Lists: lists})
	}()
	if err := <-other; err != nil { // the list gave its place to the other one, and waits for it
		t.Fatal(err)
	}
	waittest.Try(t, "this", func() error {
		runtime.GC()
		if client.page.Value() != nil || client.key.Value() != nil {
			return errors.New("the list that waits keeps the page that it has handled")
		}
		return nil
	})
	lists.Give("other")
	cancel()
	<-ended
}
