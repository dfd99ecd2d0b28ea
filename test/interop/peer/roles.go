//go:build !before1.20

package main

import (
	"maps"
	"slices"
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

func roleNames() []string { return slices.Sorted(maps.Keys(roles())) }
