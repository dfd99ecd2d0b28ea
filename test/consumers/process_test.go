package consumers

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/waiting/waittest"
)

// allOfThem, when it is set, makes a missing program a failure: make consumers has installed all.
const allOfThem = "CONSUMERS_REQUIRED"

// findProgram finds one that tests run, or skips the test.
func findProgram(t *testing.T, name string) string {
	t.Helper()
	for _, path := range []string{name, "/usr/sbin/" + name} { // which is not in everybody's PATH
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
	}
	missing(t, name+" is missing: as root, run make consumers, which installs it")
	return ""
}

func missing(t *testing.T, text string) {
	t.Helper()
	if os.Getenv(allOfThem) != "" {
		t.Fatal(text)
	}
	t.Skip(text)
}

// process is a program that runs until the end of the test.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	log *waittest.Output
}

// launch runs a program that a signal ends.
func launch(t *testing.T, cmd *exec.Cmd, ends syscall.Signal) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, log: new(waittest.Output)}
	cmd.Stdout, cmd.Stderr = p.log, p.log
	must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(ends)
		<-ended
		if t.Failed() {
			t.Logf("the log of %s:\n%s", filepath.Base(cmd.Path), p.log)
		}
	})
	return p
}

// write writes a file of the test, and returns its path.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	must(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}
