package render_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/api/client"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// process returns the process ID that a command has written to a file of the test.
func (a *agent) process(name string) int {
	a.t.Helper()
	waittest.Until(a.t, "a process to write its number", func() bool { return strings.HasSuffix(a.has(name), "\n") })
	n, err := strconv.Atoi(strings.TrimSpace(a.has(name)))
	if err != nil {
		a.t.Fatal(err)
	}
	return n
}

// TestAllProcessesOfASlowCommandEnd: the children of the shell end too (xds.md C).
func TestAllProcessesOfASlowCommandEnd(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	out := filepath.Join(a.dir, "out")
	_, _, err := a.run(t.Context(), "--once", "-t", a.file("t", "new")+"="+out, "--timeout", "2s", "--exec", "sleep 3600 & echo $! > "+filepath.Join(a.dir, "child")+"; wait")
	if err == nil || !strings.Contains(err.Error(), "longer than 2s") {
		t.Errorf("a slow command: %v", err)
	}
	child := a.process("child")
	waittest.Until(t, "its child to end", func() bool { return hasEnded(child) })
}

// hasEnded reports whether a process is gone, or is a zombie.
func hasEnded(process int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(process), "stat"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return true
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(state, "Z")
}

// TestACommandMayLeaveAServer: a command that exits with success has succeeded, even if a process that it has started
// continues to run and keeps its output open.
func TestACommandMayLeaveAServer(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	_, said, err := a.run(t.Context(), "--once", "-t", a.file("t", "new")+"="+filepath.Join(a.dir, "out"), "--exec", "sleep 3600 & echo $! > "+filepath.Join(a.dir, "child"))
	if err != nil || !strings.Contains(said, "ran sleep") {
		t.Errorf("%v, said %q", err, said)
	}
	child := a.process("child")
	if hasEnded(child) {
		t.Error("what it has started has ended")
	}
	_ = syscall.Kill(child, syscall.SIGKILL)
}

// TestWhatIsNoFileStays: only a regular file is replaced, and it keeps its owner (xds.md C).
func TestWhatIsNoFileStays(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	pipe := filepath.Join(a.dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{pipe, a.dir, "/dev/null"} {
		if _, _, err := a.run(t.Context(), "--once", "-t", a.file("t", "new")+"="+file); err == nil || !strings.Contains(err.Error(), "no regular file") {
			t.Errorf("%s: %v", file, err)
		}
	}
	if os.Getuid() != 0 {
		t.Skip("only root can give files to others")
	}
	const other = 12345
	out := a.file("out", "old")
	if err := os.Chown(out, other, other); err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.run(t.Context(), "--once", "-t", a.file("t", "new")+"="+out); err != nil || a.has("out") != "new" {
		t.Fatalf("%v, %q", err, a.has("out"))
	}
	info, err := os.Stat(out)
	if err != nil {
		t.Fatal(err)
	}
	if owner := info.Sys().(*syscall.Stat_t); owner.Uid != other || owner.Gid != other {
		t.Errorf("its owner is %d:%d", owner.Uid, owner.Gid)
	}
}

// TestALaterMistakeIsReported: if a template becomes invalid while the command runs, the file stays as it is.
func TestALaterMistakeIsReported(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	a.Play(t, "service own shop/cart 10.0.0.1")
	tmpl := a.file("t", upstream)
	said, _ := a.follow("-t", tmpl+"="+filepath.Join(a.dir, "out"), "--wait", "10ms")
	await(t, said, "wrote")
	a.file("t", "{{ nope }}")
	a.Play(t, "service own shop/cart 10.0.0.2")
	await(t, said, `function "nope" not defined; trying again`)
	if text := a.has("out"); text != "server 10.0.0.1:8080;\n" {
		t.Errorf("the file has %q", text)
	}
	a.file("t", upstream)
	waittest.Until(t, "the template to be used again", func() bool { return a.has("out") == "server 10.0.0.2:8080;\n" })
}

// TestOnceWithoutAnAgent: this is a separate error, with the exit code of commands that cannot reach the agent.
func TestOnceWithoutAnAgent(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	a.Play(t, "not-ready east is being listed")
	args := []string{"--once", "-t", a.file("t", "new") + "=" + filepath.Join(a.dir, "out")}
	if _, _, err := a.run(t.Context(), args...); err == nil || errors.Is(err, client.ErrUnreachable) || !strings.Contains(err.Error(), "does not know every cluster yet") {
		t.Errorf("an agent that is not ready: %v", err)
	}
	a.stop()
	if _, _, err := a.run(t.Context(), args...); !errors.Is(err, client.ErrUnreachable) {
		t.Errorf("no agent: %v", err)
	}
	if text := a.has("out"); !strings.Contains(text, "no such file") {
		t.Errorf("the file has %q", text)
	}
}
