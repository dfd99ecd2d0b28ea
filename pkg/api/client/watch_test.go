package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/api"
)

// frame returns one Server-Sent Event.
func frame(id, event, data string) string {
	return fmt.Sprintf("id: %s\nevent: %s\ndata: %s\n\n", id, event, data)
}

// TestWatchGoesOn: after a broken connection the watch continues after the last event.
func TestWatchGoesOn(t *testing.T) {
	t.Parallel()
	var connections atomic.Int32
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n := connections.Add(1)
		if want := map[int32]string{1: "", 2: "x-2", 3: "x-3"}[n]; r.Header.Get("Last-Event-ID") != want || r.URL.Query().Get("resource") != "things" {
			t.Errorf("connection %d: last event %q, %s", n, r.Header.Get("Last-Event-ID"), r.URL)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		switch n {
		case 1:
			fmt.Fprint(w, ": a comment\n\n", frame("x-1", "upsert", `{"resource":"things","object":{"name":"a"},"revision":1}`),
				frame("x-2", "synced", `{"resource":"things","revision":1}`), "event: upse")
		case 2:
			fmt.Fprint(w, frame("x-3", "delete", `{"resource":"things","object":{"name":"a"},"revision":3}`))
		default:
			fmt.Fprint(w, frame("x-9", "reset", `{"reason":"too slow"}`))
		}
	})
	var got []string
	breaks := 0
	for e, err := range Watch[thing](t.Context(), c, "things", Query{}, func(err error) {
		if breaks++; !errors.Is(err, ErrUnreachable) {
			t.Errorf("lost: %v", err)
		}
	}) {
		if err != nil {
			t.Fatal(err)
		}
		text := e.Kind + e.Reason
		if e.Object != nil {
			text += " " + e.Object.Name
		}
		if got = append(got, text); e.Kind == api.WatchReset {
			break
		}
	}
	if want := "upsert a,synced,delete a,resettoo slow"; strings.Join(got, ",") != want || breaks != 2 {
		t.Errorf("%d breaks, %q, want %s", breaks, got, want)
	}
}

func TestWatchEnds(t *testing.T) {
	t.Parallel()
	never := func(err error) { t.Errorf("lost: %v", err) }
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		text   string
	}{
		"refused":        {says(api.MediaTypeProblem, 400, `{"status":400,"detail":"no such resource"}`), "no such resource"},
		"another server": {says("text/html", 200, "hello"), "not a mesh-agent's"},
	} {
		for _, err := range Watch[thing](t.Context(), serve(t, test.answer), "things", Query{}, never) {
			if err == nil || !strings.Contains(err.Error(), test.text) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		cancel()
		<-r.Context().Done()
	})
	for _, err := range Watch[thing](ctx, c, "things", Query{}, never) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the caller's end: %v", err)
		}
	}
}
