package kvbackend_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/kvbackend"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func counted(reg prometheus.Gatherer, mappings, references int) error {
	return testutil.GatherAndCompare(reg, strings.NewReader(fmt.Sprintf(`
		# HELP mesh_agent_allocator_malformed_total Mappings and node references that cannot be read, each value once as far as it is remembered.
		# TYPE mesh_agent_allocator_malformed_total counter
		mesh_agent_allocator_malformed_total{kind="mapping"} %d
		mesh_agent_allocator_malformed_total{kind="reference"} %d
	`, mappings, references)), "mesh_agent_allocator_malformed_total")
}

// TestWhatCannotBeReadIsReportedOnce: an entry that cannot be read is reported once, by garbage collection or by a
// reader, and again when its value changes.
func TestWhatCannotBeReadIsReportedOnce(t *testing.T) {
	onBoth(t, func(s *site) {
		var log waittest.Output
		reg := prometheus.NewPedanticRegistry()
		b := s.with(kvbackend.Config{Log: slog.New(slog.NewTextHandler(&log, nil)), Metrics: allocator.NewMetrics(reg)})
		s.put(
			base+"/id/7", "k8s:a=1;", base+"/value/k8s:a=1;/10.0.0.9", "7", // valid
			base+"/id/4", "bad, of others", base+"/id/9", "", base+"/id/x", "k8s:x=1;", base+"/id/010", "k8s:y=1;",
			base+"/value/k8s:a=1;/10.0.0.8", "x", base+"/value/k8s:a=1;/10.0.0.7", "", base+"/value/10.0.0.6", "7", base+"/value/k8s:a=1;/", "7",
		)
		read := func() {
			s.Helper()
			if id, err := b.Get(s.Context(), keyA, nil); id != 7 || err != nil {
				s.Errorf("%d, %v", id, err)
			}
			if _, err := b.GetByID(s.Context(), 4); err == nil {
				s.Error("a mapping that cannot be read has a key")
			}
		}
		stale := s.round(b, nil, 2, 0)
		read()
		s.round(b, stale, 1, 1) // the mapping that cannot be read is deleted like any other unused one
		read()
		bad := map[string][]string{
			"mapping":   {"id/4", "id/9", "id/x", "id/010"},
			"reference": {"value/k8s:a=1;/10.0.0.8", "value/k8s:a=1;/10.0.0.7", "value/10.0.0.6", `value/k8s:a=1;/"`},
		}
		for kind, keys := range bad {
			for _, key := range keys {
				if n := len(log.Lines("level=WARN", "kind="+kind, key)); n != 1 {
					s.Errorf("%s is logged %d times", key, n)
				}
			}
		}
		if err := counted(reg, 4, 4); err != nil {
			s.Error(err)
		}

		ctx, cancel := context.WithCancel(s.Context())
		r := &recorder{make(chan string, 100)}
		ended := make(chan error, 1)
		go func() { ended <- b.ListAndWatch(ctx, r) }()
		r.next(s, 2)
		s.put(base+"/id/12", "bad too", base+"/id/7", "k8s:b=1;")
		r.next(s, 1)
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			s.Error(err)
		}
		s.put(base+"/value/k8s:a=1;/10.0.0.8", "y")
		s.round(b, nil, 2, 0)
		if err := counted(reg, 5, 5); err != nil {
			s.Error(err)
		}
		if n := len(log.Lines("id/12")); n != 1 {
			s.Errorf("what the watch has reported is logged %d times", n)
		}
	})
}

// TestWhatCannotBeReadIsBounded: a client that writes many invalid entries fills neither the log nor the memory.
func TestWhatCannotBeReadIsBounded(t *testing.T) {
	onBoth(t, func(s *site) {
		var log waittest.Output
		b := s.with(kvbackend.Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
		for i := range 1100 {
			s.put(fmt.Sprintf("%s/id/x%d", base, i), "k8s:a=1;")
		}
		for range 2 {
			s.round(b, nil, 0, 0)
		}
		if named, more := len(log.Lines("kind=mapping")), len(log.Lines("has more invalid entries")); named != 1000 || more != 1 {
			s.Errorf("%d are named, and %d lines say that there are more", named, more)
		}
	})
}
