//go:build !linux || !amd64

// Command replay runs plans of the simulation so that a run can be repeated. It needs Linux on amd64.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "replay: it needs Linux on amd64")
	os.Exit(1)
}
