//go:build !before1.20

package main

import (
	"io"
	"os"
	"syscall"

	"github.com/cilium/cilium/clustermesh-apiserver/common"
	"github.com/cilium/cilium/clustermesh-apiserver/kvstoremesh"
	"github.com/cilium/cilium/pkg/hive"
)

// runKVStoreMesh is the program kvstoremesh, with its own flags, until a signal tells
// it to end, or the end of the standard input. It answers no calls.
func runKVStoreMesh(args []string) error {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
	}()
	cmd := kvstoremesh.NewCmd(hive.New(common.Cell, kvstoremesh.Cell))
	cmd.SetArgs(args)
	return cmd.Execute()
}
