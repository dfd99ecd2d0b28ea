package converters

import (
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }
