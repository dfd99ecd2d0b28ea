package memory

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func second(_ kvstore.Result, err error) error { return err }
