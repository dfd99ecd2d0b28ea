package agent

import (
	"bytes"
	"context"
	"log/slog"
	"runtime/pprof"
)

// WithoutHive returns the log without the lines of hive that repeat other lines: the program logs its start and its
// end itself, and reports the error that Run of the hive returns. That error does not say which part did not stop, so the
// line about that stays, and the goroutines are added to the last one.
func WithoutHive(log *slog.Logger) *slog.Logger { return slog.New(withoutHive{log.Handler()}) }

type withoutHive struct{ slog.Handler }

func (h withoutHive) Handle(ctx context.Context, r slog.Record) error {
	switch r.Message {
	case "Starting hive", "Started hive", "Stopping hive", "Stopped hive", "Failed to start hive", "Start hook failed":
		return nil
	case "Failed to stop hive":
		r.AddAttrs(slog.String("goroutines", goroutines()))
	}
	return h.Handler.Handle(ctx, r)
}

func (h withoutHive) WithAttrs(attrs []slog.Attr) slog.Handler {
	return withoutHive{h.Handler.WithAttrs(attrs)}
}

func (h withoutHive) WithGroup(name string) slog.Handler {
	return withoutHive{h.Handler.WithGroup(name)}
}

// maxStacks is the number of bytes of stacks in a line.
const maxStacks = 64 << 10

// goroutines returns the stacks of all goroutines.
func goroutines() string {
	var stacks bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1) // a buffer takes everything
	return string(stacks.Next(maxStacks))
}
