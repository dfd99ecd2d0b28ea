package store

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestRawValues: all bytes are delivered unchanged, in copies that do not refer to the memory of the kvstore.
func TestRawValues(t *testing.T) {
	t.Parallel()
	mem := memory.New()
	mem.Set("x/a", "\x00\xff")
	mem.Set("x/b", "")
	events := make(chan string, 8)
	w := NewRawWatch(func(changes []Change[Raw]) {
		for _, ch := range changes {
			if ch.New == nil {
				events <- "-" + ch.Name
			} else {
				events <- ch.Name + "=" + string(*ch.New)
			}
		}
	}, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx, Session{Client: mem, Prefix: "x/"}) }()
	next := func() string {
		t.Helper()
		return waittest.Receive(t, "an event", events)
	}
	got := []string{next(), next()}
	mem.Set("x/a", "\x00\xff") // equal: no change
	mem.Set("x/b", "\xfe")
	mem.Unset("x/a")
	got = append(got, next(), next())
	if diff := cmp.Diff([]string{"a=\x00\xff", "b=", "b=\xfe", "-a"}, got); diff != "" {
		t.Error(diff)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
