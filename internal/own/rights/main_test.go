package rights

import (
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }
