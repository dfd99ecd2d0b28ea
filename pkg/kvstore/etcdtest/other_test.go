package etcdtest

import (
	"path/filepath"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/othermodule"
)

// TestAnotherModule: somebody else's module imports the client, the store and this
// package, and its test passes.
func TestAnotherModule(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a program with an etcd server")
	}
	t.Parallel()
	othermodule.Test(t, filepath.Join("testdata", "other"), filepath.Join("..", "..", ".."))
}
