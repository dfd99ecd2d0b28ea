package buildtest

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/terminaltest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// build is the output of a go build with -v: downloads, then compiled packages.
func build(packages int, more string) []string {
	text := "echo 'go: downloading example.com/a v1.0.0' >&2; for i in $(seq " + fmt.Sprint(packages) + "); do echo example.com/a/p$i >&2; done; " + more
	return []string{"/bin/sh", "-c", text}
}

func progress(args []string) *exec.Cmd {
	return exec.Command(filepath.Join("..", "..", "deploy", "progress"), args...)
}

// TestProgressInLines: without a terminal there is a line now and then, all errors, and the exit code of the build.
func TestProgressInLines(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		command []string
		code    int
		want    []string
	}{
		"a build":          {build(120, "exit 0"), 0, []string{"modules, compiled 49 packages", "modules, compiled 99 packages", "modules, compiled 120 packages"}},
		"nothing to do":    {[]string{"/bin/true"}, 0, nil},
		"it fails":         {build(0, "echo '# example.com/a' >&2; echo 'a.go:1:1: undefined: x' >&2; exit 3"), 3, []string{"# example.com/a", "a.go:1:1: undefined: x", "downloaded 1 modules, compiled 0 packages"}},
		"no such compiler": {[]string{"/no/such/go"}, 127, []string{"No such file"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := progress(tc.command)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			_ = cmd.Run()
			lines := strings.Split(strings.TrimSuffix(stderr.String(), "\n"), "\n")
			if stderr.Len() == 0 {
				lines = nil
			}
			if cmd.ProcessState.ExitCode() != tc.code || len(lines) != len(tc.want) {
				t.Fatalf("exit code %d, want %d; %q", cmd.ProcessState.ExitCode(), tc.code, lines)
			}
			for i, want := range tc.want {
				if !strings.Contains(lines[i], want) {
					t.Errorf("line %q, want %q", lines[i], want)
				}
			}
		})
	}
}

// TestProgressOnATerminal: one line that changes although a package takes long, and that never wraps.
func TestProgressOnATerminal(t *testing.T) {
	t.Parallel()
	terminal, _, written := terminaltest.Open(t, 80, 24)
	cmd := progress(build(3, "echo example.com/"+strings.Repeat("long/", 30)+" >&2; read until"))
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = terminal
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ticks := func() bool {
		return strings.Contains(written.String(), "compiled 4 packages in 1 s: example.com/long/") && strings.Contains(written.String(), " in 2 s: ")
	}
	waittest.Until(t, "the seconds to pass", ticks, written.String)
	_ = stdin.Close()
	if err := cmd.Wait(); err == nil { // of read, at the end of its input
		t.Error("the exit code of the build is lost")
	}
	waittest.Until(t, "the end", func() bool { return strings.HasSuffix(written.String(), " s\r\n") }, written.String)
	shown := strings.Split(written.String(), "\r\033[K")
	for _, line := range shown {
		if len(line) > 79 {
			t.Errorf("%q has %d columns", line, len(line))
		}
	}
	if last := shown[len(shown)-1]; strings.Count(written.String(), "\n") != 1 || !strings.HasPrefix(last, "downloaded 1 modules, compiled 4 packages in ") {
		t.Errorf("%q is left", last)
	}
}
