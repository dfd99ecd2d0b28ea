// Command peer is the other side of an interoperability test: a program made of the
// packages of one release of Cilium. Its test drives it over its standard
// input and output, see package model. It has no protocol rules of its
// own: Cilium's code reads, writes, accepts and refuses the entries.
//
// The same source is built for each release: `go build` for the newest, with the
// tags before1.20, before1.19 … and the go.mod of the folder releases for others.
package main

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/rpc"
	"net/rpc/jsonrpc"
	"os"
	"slices"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	names := slices.Sorted(maps.Keys(roles()))
	if len(args) == 0 {
		return fmt.Errorf("no role given: use one of %v", names)
	}
	start, ok := roles()[args[0]]
	if !ok {
		return fmt.Errorf("this release has no role %q: use one of %v", args[0], names)
	}
	return start(args[1:])
}

// newLogger logs as the test reads it.
func newLogger() *slog.Logger { return slog.New(slog.NewJSONHandler(os.Stderr, nil)) }

// serve answers calls of the services until the standard input ends.
func serve(services map[string]any) error {
	s := rpc.NewServer()
	for name, service := range services {
		if err := s.RegisterName(name, service); err != nil {
			return err
		}
	}
	s.ServeCodec(jsonrpc.NewServerCodec(stdio{os.Stdin, os.Stdout}))
	return nil
}

// stdio is the standard input and output as one stream.
type stdio struct {
	io.Reader
	io.Writer
}

func (stdio) Close() error { return nil }
