package monitoring

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

var update = flag.Bool("update", false, "write deploy/monitoring")

// folder is where the files are.
var folder = filepath.Join("..", "..", "deploy", "monitoring")

// TestFiles compares the files in deploy/monitoring with those made here, and writes them with -update.
func TestFiles(t *testing.T) {
	t.Parallel()
	files, err := Files()
	waittest.Must(t, err)
	for name, want := range files {
		path := filepath.Join(folder, name)
		if *update {
			waittest.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
			waittest.Must(t, os.WriteFile(path, want, 0o644))
		}
		got, err := os.ReadFile(path)
		waittest.Must(t, err)
		if d := cmp.Diff(string(want), string(got)); d != "" {
			t.Errorf("%s is not what is made here (go test ./tools/monitoring -update writes it):\n%s", path, d)
		}
	}
}
