//go:build before1.20

package main

import (
	"maps"
	"slices"
)

// roles are what a peer of an older release can be, by name.
func roles() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"codec": runCodec,
		"watch": runWatch,
	}
}

func roleNames() []string { return slices.Sorted(maps.Keys(roles())) }
