// Mesh-agent joins the nodes, services, identities and addresses of all
// clusters of a Cilium mesh into one view, and answers questions about it.
package main

import "os"

func main() {
	os.Exit(execute(newRootCommand(newRunCommand(), newOperateCommand(), newMirrorCommand(), newHiveCommand()), os.Args[1:]))
}
