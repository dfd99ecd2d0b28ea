// Mesh-agent joins the nodes, services, identities and addresses of all
// clusters of a Cilium mesh into one view, and answers questions about it.
package main

import (
	"io"
	"os"

	"google.golang.org/grpc/grpclog"
)

func main() {
	silenceGRPC()
	os.Exit(execute(newRootCommand(newRunCommand(), newOperateCommand(), newMirrorCommand(), newHiveCommand()), os.Args[1:]))
}

// silenceGRPC keeps gRPC's own log off stderr: it is beside ours in another form, and
// a remote decides how much of it there is and has its texts in it. Why a connection
// fails is in the errors of its calls. Who asks for gRPC's log gets it.
func silenceGRPC() {
	if os.Getenv("GRPC_GO_LOG_SEVERITY_LEVEL") == "" {
		grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
	}
}
