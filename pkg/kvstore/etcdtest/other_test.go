package etcdtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAnotherModule: somebody else's module imports the client, the store and this
// package, and its test passes. It needs no module but those that are here already.
func TestAnotherModule(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a program with an etcd server")
	}
	t.Parallel()
	checkout, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	copyTo := func(from, to string) {
		t.Helper()
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, to), []byte(strings.ReplaceAll(string(text), "CHECKOUT", checkout)), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	other := filepath.Join("testdata", "other")
	copyTo(filepath.Join(checkout, "go.sum"), "go.sum")
	copyTo(filepath.Join(other, "go.mod.txt"), "go.mod")
	copyTo(filepath.Join(other, "nodes_test.go"), "nodes_test.go")
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-timeout=3m", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off", "GONOSUMDB=*")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
