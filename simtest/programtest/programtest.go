// Package programtest runs other projects' programs in tests, such as dig and Prometheus. The targets of the Makefile
// that run these tests install the programs; elsewhere the tests are skipped.
package programtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/ports"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// required is the variable that makes a missing program a failure: all have been installed.
const required = "PROGRAMS_REQUIRED"

// Find returns the path of the first of these programs that is installed. Without one the test is skipped, and names
// the target of make that installs it.
func Find(t testing.TB, target string, names ...string) string {
	t.Helper()
	for _, name := range names {
		for _, path := range []string{name, "/usr/sbin/" + name} { // which is not in every user's PATH
			if found, err := exec.LookPath(path); err == nil {
				return found
			}
		}
	}
	Missing(t, names[0]+" is missing: as root, run make "+target+", which installs it")
	return ""
}

// Missing skips the test because a program is missing, or fails it if all are required.
func Missing(t testing.TB, text string) {
	t.Helper()
	if os.Getenv(required) != "" {
		t.Fatal(text)
	}
	t.Skip(text)
}

// Start runs a program until the end of the test, which ends it with a signal, and returns its output. The output is
// shown when the test fails.
func Start(t testing.TB, cmd *exec.Cmd, ends syscall.Signal) *waittest.Output {
	t.Helper()
	log := new(waittest.Output)
	cmd.Stdout, cmd.Stderr = log, log
	waittest.Must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(ends)
		<-ended
		if t.Failed() {
			t.Logf("the log of %s:\n%s", filepath.Base(cmd.Path), log)
		}
	})
	return log
}

// Reserve reserves an address for the test, for TCP and UDP.
func Reserve(t testing.TB) string {
	t.Helper()
	r, err := ports.ReserveBoth()
	waittest.Must(t, err)
	t.Cleanup(r.Release)
	return r.Addr()
}

// Write writes a file, and returns its path.
func Write(t testing.TB, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	waittest.Must(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}
