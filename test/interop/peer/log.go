//go:build !before1.20

package main

import (
	"log/slog"

	"github.com/cilium/cilium/pkg/logging"
)

// setLogger makes a logger and has everything in the process log to it: some
// packages log by themselves.
func setLogger() *slog.Logger {
	log := newLogger()
	logging.DefaultSlogLogger = log
	slog.SetDefault(log)
	return log
}
