package monitoring

import (
	"os"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
	"github.com/mesh-agent/mesh-agent/simtest/kubetest"
	"github.com/mesh-agent/mesh-agent/simtest/programtest"
)

func TestMain(m *testing.M) { agenttest.Main(m) }

var must = agenttest.Must

// needKubernetes skips the test if there is no API server.
func needKubernetes(t *testing.T) {
	t.Helper()
	if os.Getenv(kubetest.Program) == "" {
		programtest.Missing(t, "no Kubernetes API server: make consumers builds it, or set "+kubetest.Program+" to the path of kube-apiserver")
	}
}
