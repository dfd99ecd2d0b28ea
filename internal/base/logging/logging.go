// Package logging sets up the one log of the program: packages log through
// slog, logrus writes the lines. All lines have one form, text or JSON.
package logging

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/sirupsen/logrus"
	slogbridge "github.com/sirupsen/logrus/hooks/slog"
)

// Levels are the accepted names of levels, most severe first.
func Levels() []string { return []string{"error", "warn", "info", "debug"} }

// Formats are the accepted names of formats.
func Formats() []string { return []string{"text", "json"} }

// CheckLevel accepts a name of Levels; the error lists them.
func CheckLevel(name string) error {
	_, err := parseLevel(name)
	return err
}

// CheckFormat accepts a name of Formats; the error lists them.
func CheckFormat(name string) error {
	if !slices.Contains(Formats(), name) {
		return fmt.Errorf("log format %q is unknown: use one of %v", name, Formats())
	}
	return nil
}

// New returns a logger that writes to w, and its level, which may be changed while the logger is used. The level and
// the format are names of Levels and Formats; an unknown name is an error.
func New(w io.Writer, level, format string) (*slog.Logger, *Level, error) {
	sink := logrus.New()
	sink.SetOutput(w)
	l := &Level{sink}
	if err := l.Set(level); err != nil {
		return nil, nil, err
	}
	if err := CheckFormat(format); err != nil {
		return nil, nil, err
	}
	sink.SetFormatter(&logrus.TextFormatter{FullTimestamp: true, TimestampFormat: time.RFC3339Nano, DisableColors: true})
	if format == "json" {
		sink.SetFormatter(&logrus.JSONFormatter{TimestampFormat: time.RFC3339Nano})
	}
	return slog.New(slogbridge.NewHandler(sink, nil)), l, nil
}

// Level is how much a log says. Any goroutine may read and change it.
type Level struct{ sink *logrus.Logger }

// Get returns the name of the present level, one of Levels.
func (l *Level) Get() string {
	if level := l.sink.GetLevel(); level != logrus.WarnLevel { // logrus says "warning"
		return level.String()
	}
	return "warn"
}

// Set changes the level, from the next line on. A name that is none of Levels
// is an error and changes nothing.
func (l *Level) Set(name string) error {
	level, err := parseLevel(name)
	if err == nil {
		l.sink.SetLevel(level)
	}
	return err
}

// parseLevel is as lenient as logrus: WARNING is warn.
func parseLevel(name string) (logrus.Level, error) {
	level, err := logrus.ParseLevel(name)
	if err != nil || level < logrus.ErrorLevel || level > logrus.DebugLevel {
		return 0, fmt.Errorf("log level %q is unknown: use one of %v", name, Levels())
	}
	return level, nil
}
