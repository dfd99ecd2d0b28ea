package consumers

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// load sends requests to a proxy all the time, until the end of the test. Each failed request fails the test.
type load struct {
	w      *world
	client http.Client
	mu     sync.Mutex
	sent   int
	last   []string // the latest servers that have answered
}

// window is the number of consecutive answers that show which servers are used.
const window = 60

// load starts the requests, and returns after the first answer.
func (w *world) load(address string) *load {
	w.t.Helper()
	l := &load{w: w, client: http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	waittest.Try(w.t, "the proxy", func() error { return l.ask(address) })
	ctx, done := w.t.Context(), make(chan struct{})
	go func() {
		defer close(done)
		for waiting.Sleep(ctx, 3*time.Millisecond) == nil {
			if err := l.ask(address); err != nil {
				w.t.Errorf("request %d: %v", l.sent, err)
			}
		}
	}()
	w.t.Cleanup(func() { <-done }) // its context ends earlier
	return l
}

func (l *load) ask(address string) error {
	resp, err := l.client.Get("http://" + address)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	from, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, from)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent++
	if err == nil {
		l.last = append(l.last[max(0, len(l.last)-window+1):], string(from))
	}
	return err
}

// await waits until exactly these servers answer.
func (l *load) await(what string, want ...string) {
	l.w.t.Helper()
	l.mu.Lock()
	l.last = nil
	l.mu.Unlock()
	waittest.Try(l.w.t, what, func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		got := make(map[string]bool)
		for _, from := range l.last {
			got[from] = true
		}
		if all := slices.Sorted(maps.Keys(got)); len(l.last) < window || !slices.Equal(all, want) {
			return fmt.Errorf("%d answers, of %v, want %v", len(l.last), all, want)
		}
		return nil
	})
}

// more waits for more answers, from any server.
func (l *load) more(what string) {
	l.w.t.Helper()
	l.mu.Lock()
	until := l.sent + 3*window
	l.mu.Unlock()
	waittest.Until(l.w.t, what, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.sent >= until
	})
}
