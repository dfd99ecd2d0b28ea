// Package install proves on a real Kubernetes API server what Helm makes of the chart: its own
// library installs, upgrades, rolls back and uninstalls. It has tests only, and they are skipped
// where there is no API server; `make chart` builds it and runs them.
package install

import (
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }
