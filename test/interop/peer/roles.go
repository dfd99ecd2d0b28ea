//go:build !before1.20

package main

import (
	"io"
	"log/slog"
	"os"
	"syscall"

	"github.com/cilium/cilium/clustermesh-apiserver/common"
	"github.com/cilium/cilium/clustermesh-apiserver/kvstoremesh"
	"github.com/cilium/cilium/pkg/hive"
	"github.com/cilium/cilium/pkg/logging"
)

// roles are what a peer can be, by name.
func roles() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"codec":       runCodec,
		"publish":     runPublish,
		"read":        runRead,
		"allocate":    runAllocate,
		"kvstoremesh": runKVStoreMesh,
	}
}

// setLogger makes a logger and has everything in the process log to it: some
// packages log by themselves.
func setLogger() *slog.Logger {
	log := newLogger()
	logging.DefaultSlogLogger = log
	slog.SetDefault(log)
	return log
}

// runKVStoreMesh runs the program kvstoremesh, with its own flags, until a signal
// or the end of the standard input. It answers no calls.
func runKVStoreMesh(args []string) error {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
	}()
	cmd := kvstoremesh.NewCmd(hive.New(common.Cell, kvstoremesh.Cell))
	cmd.SetArgs(args)
	return cmd.Execute()
}
