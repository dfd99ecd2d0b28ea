package etcdtest

import (
	"path/filepath"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/othermodule"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestAnotherModule: another module imports the client, the store and this
// package, and its test passes.
func TestAnotherModule(t *testing.T) {
	waittest.Long(t)
	t.Parallel()
	othermodule.Test(t, filepath.Join("testdata", "other"), filepath.Join("..", ".."))
}
