// Package deploy holds what proves the image and the manifest: the Dockerfile's
// steps are done here, the manifest is read with the types of the Kubernetes API,
// and the program is run as both say.
package deploy

import (
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }
