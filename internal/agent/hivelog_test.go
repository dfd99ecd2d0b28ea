package agent

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/cilium/hive"
	"github.com/cilium/hive/cell"
)

// TestWhatDoesNotStopIsNamed: when a part does not stop in time, the log names it and has the goroutines, and not when all
// parts stop.
func TestWhatDoesNotStopIsNamed(t *testing.T) {
	t.Parallel()
	for _, hangs := range []bool{true, false} {
		options := hive.DefaultOptions()
		if hangs {
			options.StopTimeout = 10 * time.Millisecond
		}
		stop := func(ctx cell.HookContext) error {
			if !hangs {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}
		h := hive.NewWithOptions(options, cell.Invoke(func(lc cell.Lifecycle, s hive.Shutdowner) {
			lc.Append(cell.Hook{OnStart: func(cell.HookContext) error { s.Shutdown(); return nil }, OnStop: stop})
		}))
		var out bytes.Buffer
		if err := h.Run(WithoutHive(slog.New(slog.NewTextHandler(&out, nil)))); (err != nil) != hangs {
			t.Errorf("hangs: %t, and it ended with %v", hangs, err)
		}
		for _, want := range []string{`msg="Stop hook failed" function="agent.TestWhatDoesNotStopIsNamed`, "goroutine profile"} {
			if strings.Contains(out.String(), want) != hangs {
				t.Errorf("hangs: %t, and %q in the log: %t\n%s", hangs, want, !hangs, out.String())
			}
		}
	}
}
