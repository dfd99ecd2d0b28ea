package monitoring

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/agent/agenttest"
	"github.com/mesh-agent/mesh-agent/internal/kubetest"
	"github.com/mesh-agent/mesh-agent/internal/ports"
	"github.com/mesh-agent/mesh-agent/internal/waiting/waittest"
)

func TestMain(m *testing.M) { agenttest.Main(m) }

var must = agenttest.Must

// allOfThem, when it is set, makes a missing program a failure: make consumers has installed all.
const allOfThem = "CONSUMERS_REQUIRED"

// findProgram finds one that tests run, or skips the test.
func findProgram(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		missing(t, name+" is missing: as root, run make consumers, or test/install prometheus")
	}
	return path
}

// needKubernetes skips the test where there is no API server.
func needKubernetes(t *testing.T) {
	t.Helper()
	if os.Getenv(kubetest.Program) == "" {
		missing(t, "no Kubernetes API server: make consumers builds it, or set "+kubetest.Program+" to the path of kube-apiserver")
	}
}

func missing(t *testing.T, text string) {
	t.Helper()
	if os.Getenv(allOfThem) != "" {
		t.Fatal(text)
	}
	t.Skip(text)
}

// launch runs a program until the end of the test.
func launch(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	log := new(waittest.Output)
	cmd.Stdout, cmd.Stderr = log, log
	must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
		if t.Failed() {
			t.Logf("the log of %s:\n%s", filepath.Base(cmd.Path), log)
		}
	})
}

// write writes a file of the test, and returns its path.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	must(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// reserve keeps a port that the system gives to nobody by itself.
func reserve(t *testing.T) string {
	t.Helper()
	for {
		r, err := ports.Reserve(fmt.Sprint("127.0.0.1:", 15000+rand.IntN(15000)))
		if err == nil {
			t.Cleanup(r.Release)
			return r.Addr()
		}
	}
}
