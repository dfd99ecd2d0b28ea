package identities

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var must = waittest.Must
