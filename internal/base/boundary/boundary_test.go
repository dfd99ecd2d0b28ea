package boundary

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/simtest/codestest"
)

func TestWhatFailsEndsAlone(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	all := New(slog.New(slog.NewTextHandler(&log, nil)))
	b, other := all.Part("dns"), all.Part("xds")
	own := errors.New("of the client")
	if err := b.Run(func() error { return own }); !errors.Is(err, own) {
		t.Errorf("an error became %v", err)
	}
	index := func(i int) error { _ = []int{}[i]; return nil }
	for i := range 3 {
		if err := b.Run(func() error { return index(i) }, "client", "10.0.0.1"); !errors.Is(err, ErrInternal) {
			t.Errorf("a panic became %v", err)
		}
	}
	other.Report(nil)
	other.Report(fmt.Errorf("cannot be encoded"))
	other.Report(fmt.Errorf("cannot be encoded"))
	text := log.String()
	if n := strings.Count(text, "\n"); n != 2 || strings.Count(text, "boundary_test.go") == 0 || !strings.Contains(text, "client=10.0.0.1") {
		t.Errorf("%d lines: %s", n, text)
	}
	if !strings.Contains(text, string(codes.WorkFailed)) {
		t.Errorf("no code: %s", text)
	}
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(all)
	if err := testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP mesh_agent_internal_errors_total Internal errors that ended the work for one client, question or object, by part of the program.
# TYPE mesh_agent_internal_errors_total counter
mesh_agent_internal_errors_total{part="dns"} 3
mesh_agent_internal_errors_total{part="xds"} 2
`)); err != nil {
		t.Error(err)
	}
	codestest.Reached(t, codes.Boundary, codes.WorkFailed)
}

// TestTheLogIsBounded: errors with ever new texts do not fill the memory.
func TestTheLogIsBounded(t *testing.T) {
	t.Parallel()
	all := New(nil)
	b := all.Part("dns")
	for i := range 2 * maxSaid {
		b.Report(fmt.Errorf("error %d", i))
	}
	if len(all.said) != maxSaid {
		t.Errorf("%d texts are kept", len(all.said))
	}
	var none *Boundaries
	if err := none.Part("x").Run(func() error { panic("x") }); !errors.Is(err, ErrInternal) {
		t.Error(err)
	}
}
