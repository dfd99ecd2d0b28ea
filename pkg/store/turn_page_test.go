package store

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"testing"
	"weak"

	"github.com/mesh-agent/mesh-agent/internal/waiting/waittest"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcdtest"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// noting is a client that tells whether the last page is still in memory.
type noting struct {
	kvstore.Client
	page weak.Pointer[kvstore.KeyValue]
	key  weak.Pointer[byte]
}

func (c *noting) List(ctx context.Context, prefix string, page func(kvstore.Page) error, holding ...*kvstore.Lock) (kvstore.Position, error) {
	return c.Client.List(ctx, prefix, func(p kvstore.Page) error {
		c.page, c.key = weak.Make(&p.Items[0]), weak.Make(&p.Items[0].Key[0])
		return page(p)
	}, holding...)
}

// TestAListThatLetsOthersGoFirstHasNoPage: turns bound the pages in memory, so a list
// must not keep the page that it has handled while it waits for its next turn.
func TestAListThatLetsOthersGoFirstHasNoPage(t *testing.T) {
	t.Parallel()
	srv := etcdtest.Start(t)
	srv.Put(t, testPrefix+"a", "1", testPrefix+"b", "2")
	cfg, err := kvstore.NewConfig(srv.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	etcd, err := kvstore.Connect(t.Context(), cfg, 0, kvstore.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer etcd.Close()

	client, lists := &noting{Client: etcd}, NewTurns(1)
	other := make(chan chan struct{}, 1)
	w := NewWatch(Kind[string]{
		Resource: "x",
		Decode:   func(wire.Expect) Decode[string] { return decodeText },
		Apply:    func([]Change[string]) { other <- lists.ask("other") },
	}, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- w.Run(ctx, Session{Client: client, Prefix: testPrefix, Expect: wire.Expect{Cluster: "c2"}, Lists: lists})
	}()
	<-<-other // the list gave its place to the other one, and waits for it
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
