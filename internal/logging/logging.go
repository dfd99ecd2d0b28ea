// Package logging sets up the one log of the program: packages log through
// slog, logrus writes the lines. All lines have one form, text or JSON.
package logging

import (
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/sirupsen/logrus"
	slogbridge "github.com/sirupsen/logrus/hooks/slog"
)

// Levels are the accepted names of levels, most severe first.
func Levels() []string { return []string{"error", "warn", "info", "debug"} }

// Formats are the accepted names of formats.
func Formats() []string { return []string{"text", "json"} }

// New returns a logger that writes to w. The level and the format are names of
// Levels and Formats; any other is an error that says so.
func New(w io.Writer, level, format string) (*slog.Logger, error) {
	sink := logrus.New()
	sink.SetOutput(w)
	parsed, err := logrus.ParseLevel(level)
	if err != nil || parsed < logrus.ErrorLevel || parsed > logrus.DebugLevel {
		return nil, fmt.Errorf("log level %q is unknown: use one of %v", level, Levels())
	}
	sink.SetLevel(parsed)
	switch format {
	case "text":
		sink.SetFormatter(&logrus.TextFormatter{FullTimestamp: true, TimestampFormat: time.RFC3339Nano, DisableColors: true})
	case "json":
		sink.SetFormatter(&logrus.JSONFormatter{TimestampFormat: time.RFC3339Nano})
	default:
		return nil, fmt.Errorf("log format %q is unknown: use one of %v", format, Formats())
	}
	return slog.New(slogbridge.NewHandler(sink, nil)), nil
}
