package agent

import (
	"context"
	"log/slog"
)

// WithoutHive returns the log without the lines of hive that repeat other lines: the program logs its start and its
// end itself, and reports the error that Run of the hive returns. That error does not say which part did not stop.
func WithoutHive(log *slog.Logger) *slog.Logger { return slog.New(withoutHive{log.Handler()}) }

type withoutHive struct{ slog.Handler }

func (h withoutHive) Handle(ctx context.Context, r slog.Record) error {
	switch r.Message {
	case "Starting hive", "Started hive", "Stopping hive", "Stopped hive",
		"Failed to start hive", "Failed to stop hive", "Start hook failed":
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

func (h withoutHive) WithAttrs(attrs []slog.Attr) slog.Handler {
	return withoutHive{h.Handler.WithAttrs(attrs)}
}

func (h withoutHive) WithGroup(name string) slog.Handler {
	return withoutHive{h.Handler.WithGroup(name)}
}
