package agenttest

import (
	"bufio"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// watcher is a running command, mostly a watch, in a process of its own.
type watcher struct {
	t        *testing.T
	cmd      *exec.Cmd
	out, err *bufio.Scanner
}

// StartWatch starts `kvstore watch` with these arguments.
func StartWatch(t *testing.T, args ...string) *watcher {
	t.Helper()
	return StartCommand(t, append([]string{"kvstore", "watch"}, args...)...)
}

// StartCommand starts a command line of the real program.
func StartCommand(t *testing.T, args ...string) *watcher {
	t.Helper()
	w := &watcher{t: t, cmd: Program(t, args...)}
	pipe := func(open func() (io.ReadCloser, error)) *bufio.Scanner {
		r, err := open()
		Must(t, err)
		return bufio.NewScanner(r)
	}
	w.out, w.err = pipe(w.cmd.StdoutPipe), pipe(w.cmd.StderrPipe)
	Must(t, w.cmd.Start())
	giveUp := time.AfterFunc(10*time.Minute, func() { _ = w.cmd.Process.Signal(syscall.SIGQUIT) })
	t.Cleanup(func() {
		giveUp.Stop()
		if w.cmd.ProcessState == nil {
			_ = w.cmd.Process.Kill()
			_ = w.cmd.Wait()
		}
	})
	return w
}

// Lines reads n lines of data.
func (w *watcher) Lines(n int) []string {
	w.t.Helper()
	var lines []string
	for range n {
		if !w.out.Scan() {
			w.t.Fatalf("the watch ended after %q", lines)
		}
		lines = append(lines, w.out.Text())
	}
	return lines
}

// Says waits for a message.
func (w *watcher) Says(part string) {
	w.t.Helper()
	var heard []string
	for w.err.Scan() {
		if strings.Contains(w.err.Text(), part) {
			return
		}
		heard = append(heard, w.err.Text())
	}
	w.t.Fatalf("never said %q, but %q", part, heard)
}

// Interrupt ends it as Ctrl-C does.
func (w *watcher) Interrupt() {
	w.t.Helper()
	Must(w.t, w.cmd.Process.Signal(syscall.SIGINT))
	if w.out.Scan() {
		w.t.Errorf("one more line: %s", w.out.Text())
	}
	if err := w.cmd.Wait(); err != nil {
		w.t.Errorf("interrupted: %v", err)
	}
}
