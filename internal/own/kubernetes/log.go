package kubernetes

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// LogThrough makes the libraries of Kubernetes write to this log, for debugging, what they
// would write to standard error. They have one log for the whole process (klog), so main
// does it once, before anything of this package runs. Most of what they say reaches the log
// of the source without it.
func LogThrough(log *slog.Logger) { klog.SetSlogLogger(slog.New(debug{log.Handler()})) }

// clientLogger is a log for the libraries of Kubernetes.
func clientLogger(log *slog.Logger) klog.Logger { return logr.FromSlogHandler(debug{log.Handler()}) }

// debug is a handler that takes every line for one that is for debugging.
type debug struct{ slog.Handler }

func (d debug) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo && d.Handler.Enabled(ctx, slog.LevelDebug)
}

func (d debug) Handle(ctx context.Context, r slog.Record) error {
	if !d.Handler.Enabled(ctx, slog.LevelDebug) {
		return nil // Enabled is not called before errors
	}
	r.Level = slog.LevelDebug
	return d.Handler.Handle(ctx, r)
}

func (d debug) WithAttrs(attrs []slog.Attr) slog.Handler { return debug{d.Handler.WithAttrs(attrs)} }

func (d debug) WithGroup(name string) slog.Handler { return debug{d.Handler.WithGroup(name)} }
