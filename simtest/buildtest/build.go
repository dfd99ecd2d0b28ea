// Package buildtest builds the program for tests that run it as users do.
package buildtest

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Agent builds mesh-agent as `make build` does, so that both use one cache and measurements are without the
// race detector. It returns the path of the program, which exists until the end of the test.
func Agent(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "mesh-agent")
	Released(tb, "build", "-o", path, "github.com/mesh-agent/mesh-agent/cmd/mesh-agent")
	return path
}

// Released runs a verb of the go command (build, test) with the flags of a release.
func Released(tb testing.TB, verb string, args ...string) {
	tb.Helper()
	if err := readSources(); err != nil {
		tb.Fatal(err)
	}
	args = append([]string{verb, "-trimpath", "-tags", "grpcnotrace", "-gcflags", "k8s.io/...=-l", "-ldflags", "-s -w"}, args...)
	cmd := exec.CommandContext(tb.Context(), "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// readSources reads the directories of the sources. The go command keeps the result of a test as long as the files and
// directories that the test has read are the same: it does not know those that a compiler reads for the test. Their
// names are relative, so that they are those of another clone as well.
func readSources() error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	root := "."
	for ; ; root, dir = filepath.Join(root, ".."), filepath.Dir(dir) {
		if _, err = os.Stat(filepath.Join(root, "go.sum")); !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			break
		}
	}
	for _, dir := range []string{"cmd", "internal", "pkg"} {
		err = errors.Join(err, filepath.WalkDir(filepath.Join(root, dir), func(_ string, _ fs.DirEntry, err error) error { return err }))
	}
	return err
}
