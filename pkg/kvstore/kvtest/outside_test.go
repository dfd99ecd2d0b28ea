package kvtest

import (
	"path/filepath"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/othermodule"
)

// TestAnEngineOutside: an engine in another module passes the suite.
func TestAnEngineOutside(t *testing.T) {
	t.Parallel()
	checkout := filepath.Join("..", "..", "..")
	othermodule.Test(t, filepath.Join(checkout, "test", "engine"), checkout)
}
