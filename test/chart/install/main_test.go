// Package install tests the chart with Helm and a real Kubernetes API server: Helm's own library installs, upgrades,
// rolls back and uninstalls it. It has tests only, and they are skipped without an API server; `make chart` builds it
// and runs them.
package install

import (
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }
