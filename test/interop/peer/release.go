package main

import (
	"runtime/debug"
	"strings"
)

// release returns the release of Cilium that the peer is made of.
func release() string {
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		if m.Path == "github.com/cilium/cilium" {
			return strings.TrimPrefix(m.Version, "v")
		}
	}
	return "unknown"
}
