package live

import (
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }
