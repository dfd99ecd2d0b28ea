// Command apiserver is the API server of Kubernetes as it is, built from its
// Go module: what the tests in the folder above run against. It is a module
// of its own, because its requirements must not become the agent's.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	os.Exit(cli.Run(app.NewAPIServerCommand()))
}
