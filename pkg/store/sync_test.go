package store

import (
	"context"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

func TestSmoke(t *testing.T) {
	mem := kvstore.NewMemory()
	ctx, cancel := context.WithCancel(t.Context())
	mem.Set("p/x/old", "1")
	done := make(chan error, 9)
	go func() { done <- mem.Run(ctx, nil) }()
	o := NewOutbox(mem, nil, nil, nil)
	go func() { done <- o.Run(ctx) }()
	s := NewSync(SyncParams{Prefix: "p/x/", Outbox: o})
	go func() { done <- s.Run(ctx) }()
	c := NewCanaries(CanariesParams{Dir: "synced/", Writer: mem})
	c.Add("p/x", s)
	go func() { done <- c.Run(ctx) }()
	s.Put("a", []byte("1"))
	s.Put("b", []byte("1"))
	s.Complete()
	if err := s.WaitClean(ctx); err != nil {
		t.Fatal(err)
	}
	st := s.Status()
	t.Logf("%+v", st)
	for {
		kv, _, _ := mem.Get(ctx, "synced/p/x")
		if kv != nil {
			t.Logf("%+v", kv)
			break
		}
	}
	_, _ = mem.List(ctx, "p/x/", func(p kvstore.Page) error {
		for _, i := range p.Items {
			t.Logf("%s=%s", i.Key, i.Value)
		}
		return nil
	})
	cancel()
	for range 4 {
		<-done
	}
}
