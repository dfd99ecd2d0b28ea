// Mesh-agent joins the nodes, services, identities and addresses of all
// clusters of a Cilium mesh into one view, and answers questions about it.
package main

import (
	"os"

	"github.com/mesh-agent/mesh-agent/internal/cli"
)

// release is set by the linker (-X main.release=v1.2.3) and never changed by the program.
var release string

func main() { os.Exit(cli.Main(release, os.Args[1:])) }
