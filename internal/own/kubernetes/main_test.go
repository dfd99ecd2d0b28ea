package kubernetes

import (
	"log/slog"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	LogThrough(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}
