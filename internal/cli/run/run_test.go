package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
)

// TestWhatDoesNotStopIsNamed: when a part of the agent does not stop in time, the log has the goroutines, and for other
// errors it has not.
func TestWhatDoesNotStopIsNamed(t *testing.T) {
	t.Parallel()
	for _, why := range []error{context.DeadlineExceeded, errors.New("no route to host")} {
		var out bytes.Buffer
		err := ended(slog.New(slog.NewTextHandler(&out, nil)), config.Config{}, fmt.Errorf("failed to stop: %w", why))
		if !errors.Is(err, why) || strings.Contains(out.String(), "TestWhatDoesNotStopIsNamed") != errors.Is(why, context.DeadlineExceeded) {
			t.Errorf("%v: the error is %v, and the log has\n%s", why, err, out.String())
		}
	}
}
