package mirror

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/internal/base/guard"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// TestAPanicOfACopyIsAnError, which ends the session of that remote and not the
// process; the values at hand are not those of the names that come next.
func TestAPanicOfACopyIsAnError(t *testing.T) {
	t.Parallel()
	own := memory.New()
	defer own.Close()
	f, _ := newFamily(own, wire.IPs)
	prefix := wire.IPs.Prefix("c1", false)
	f.values = [][]byte{[]byte("left over")}
	// The mistake: a name is taken of a key that has none.
	h := &hostile{listed: []kvstore.KeyValue{{Key: []byte(prefix + "10.0.0.1"), Value: []byte("v"), ModRevision: 1}, {Key: []byte("short")}}}
	err := f.Run(t.Context(), store.Session{Client: h, Prefix: prefix})
	if p, panicked := errors.AsType[*guard.Panic](err); !panicked {
		t.Fatalf("%v, %v", err, p)
	}
	if len(f.values) != 1 || string(f.values[0]) != "v" {
		t.Errorf("the values at hand are %q", f.values)
	}
}

// panicking is our own kvstore with a mistake in it: the first lists of addresses panic.
type panicking struct {
	*memory.Store
	left atomic.Int64
}

func (p *panicking) List(ctx context.Context, prefix string, page func(kvstore.Page) error, opts ...kvstore.ReadOption) (kvstore.Position, error) {
	if strings.Contains(prefix, "/ip/") && p.left.Add(-1) >= 0 {
		panic("a mistake in the code")
	}
	return p.Store.List(ctx, prefix, page, opts...)
}

// TestACopyBeginsAgainAfterAPanic: within the term, after pauses.
func TestACopyBeginsAgainAfterAPanic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		own := &panicking{Store: memory.New()}
		defer own.Close()
		own.left.Store(3)
		var text bytes.Buffer
		log := slog.New(slog.NewTextHandler(&text, nil))
		term := &term{Mirror: &Mirror{Params: Params{Params: clustermesh.Params{Log: log}, Writer: own}}, outbox: syncstore.NewOutbox(own, nil, nil, nil)}
		c := term.newCopy("c1")
		ctx, cancel := context.WithCancel(t.Context())
		g, running := errgroup.WithContext(ctx)
		g.Go(func() error { return own.Run(running, nil) })
		g.Go(func() error { return term.outbox.Run(running) })
		g.Go(func() error { c.Follow(running); return nil })
		f := c.families[len(c.families)-1]
		if f.resource != wire.IPs {
			t.Fatalf("the last family is %s", f.resource)
		}
		f.sync.Put("10.0.0.1", []byte("{}"))
		f.sync.Complete()
		key := wire.IPs.Prefix("c1", true) + "10.0.0.1"
		within, stop := context.WithTimeout(ctx, 5*time.Minute)
		defer stop()
		for {
			if kv, _, err := own.Get(ctx, key); err != nil {
				t.Fatal(err)
			} else if kv != nil {
				break
			}
			if within.Err() != nil {
				t.Fatalf("%s was not written: %s", key, &text)
			}
			time.Sleep(time.Second) // of the bubble
		}
		cancel()
		_ = g.Wait()
		if n := strings.Count(text.String(), "it starts again"); n != 3 || !strings.Contains(text.String(), "a mistake in the code") {
			t.Errorf("logged %d times: %s", n, &text)
		}
	})
}
