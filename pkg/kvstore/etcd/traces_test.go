package etcd

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestTracesAreBounded: the first operations of a second are traced, then few, and the
// number of omitted ones is reported.
func TestTracesAreBounded(t *testing.T) {
	t.Parallel()
	traces, now := NewTraces(), time.Unix(1_000_000, 0)
	traced, omitted := 0, 0
	for range 100_000 {
		if n, ok := traces.admit(now, false); ok {
			traced, omitted = traced+1, omitted+n
		}
	}
	if traced != tracedFirst+100_000/tracedShare {
		t.Errorf("%d of 100,000 operations of one second are traced", traced)
	}
	if _, ok := traces.admit(now, true); !ok {
		t.Error("one that failed is not traced")
	}
	n, ok := traces.admit(now.Add(time.Second), false)
	if traced, omitted = traced+1, omitted+n; !ok || traced+omitted != 100_001 {
		t.Errorf("%d traced and %d reported as omitted, of 100,001 operations", traced, omitted)
	}
	for range 3 * tracedFirst {
		if _, ok := (*Traces)(nil).admit(now, false); !ok {
			t.Fatal("without bounds one is not traced")
		}
	}
}

// TestATraceSaysWhatWasLeftOut: the number of omitted operations is logged, also when two sessions share the bound.
func TestATraceSaysWhatWasLeftOut(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	traces := NewTraces()
	var sessions []*Session
	for _, endpoint := range []string{"one", "two"} {
		sessions = append(sessions, &Session{endpoint: endpoint, opts: Options{Log: log, Traces: traces}})
	}
	const each = 5 * tracedShare
	for range each {
		for _, e := range sessions {
			e.record("get", "k", time.Millisecond, nil)
		}
	}
	sessions[1].record("get", "k", time.Millisecond, errors.New("broken"))
	lines := strings.Count(out.String(), "Kvstore operation")
	// On a slow machine the operations take more than one second.
	if lines < tracedFirst || lines > each {
		t.Errorf("%d lines for %d operations", lines, 2*each)
	}
	for _, part := range []string{"endpoint=one", "endpoint=two", "error=broken", "notTraced="} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("no line says %s", part)
		}
	}
}
