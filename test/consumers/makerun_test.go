package consumers

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
	"github.com/mesh-agent/mesh-agent/simtest/programtest"
	"github.com/mesh-agent/mesh-agent/simtest/sim/program"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestMakeRun: `make run` prints a dig command that works.
func TestMakeRun(t *testing.T) {
	t.Parallel()
	programtest.Find(t, "consumers", "dig")
	makefile, err := os.ReadFile("../../Makefile")
	must(t, err)
	line := regexp.MustCompile(`(?m)^run: build\n\t@.*-- bin/mesh-agent (run .*)$`).FindSubmatch(makefile)
	if line == nil {
		t.Fatal("the Makefile has no such target")
	}
	exe, err := os.Executable()
	must(t, err)
	dir, err := os.MkdirTemp("", "run") // short, as the path of a socket has a limit
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := program.DefaultSettings()
	s.ControlSocket = filepath.Join(dir, "control")
	s.Command = append([]string{"/usr/bin/env", agenttest.AsAgent + "=1", exe}, strings.Fields(strings.Replace(string(line[1]), "127.0.0.1:5300", programtest.Reserve(t), 1))...)
	s.Command = append(s.Command, "--listen", programtest.Reserve(t), "--socket", filepath.Join(dir, "agent"))
	printed := new(waittest.Output)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- program.Simulate(ctx, s, printed) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	command := regexp.MustCompile(`(?m)^ +(dig @.*?) +#`)
	var found []string
	waittest.Until(t, "what to try", func() bool { found = command.FindStringSubmatch(printed.String()); return found != nil }, printed.String)
	waittest.Until(t, found[1], func() bool {
		out, _ := exec.Command("/bin/sh", "-c", found[1]).CombinedOutput()
		return strings.Contains(string(out), "status: NOERROR") && strings.Contains(string(out), "ANSWER: 12")
	}, printed.String)
}
