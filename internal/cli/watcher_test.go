package cli_test

import (
	"bufio"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
)

// watcher is a running command, mostly a watch, in a process of its own.
type watcher struct {
	t        *testing.T
	cmd      *exec.Cmd
	out, err *bufio.Scanner
}

// startWatch starts `kvstore watch` with these arguments.
func startWatch(t *testing.T, args ...string) *watcher {
	t.Helper()
	return startCommand(t, append([]string{"kvstore", "watch"}, args...)...)
}

// startCommand starts a command line of the real program.
func startCommand(t *testing.T, args ...string) *watcher {
	t.Helper()
	w := &watcher{t: t, cmd: agenttest.Program(t, args...)}
	pipe := func(open func() (io.ReadCloser, error)) *bufio.Scanner {
		r, err := open()
		agenttest.Must(t, err)
		return bufio.NewScanner(r)
	}
	w.out, w.err = pipe(w.cmd.StdoutPipe), pipe(w.cmd.StderrPipe)
	agenttest.Must(t, w.cmd.Start())
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

// lines reads n lines of data.
func (w *watcher) lines(n int) []string {
	w.t.Helper()
	var all []string
	for range n {
		if !w.out.Scan() {
			w.t.Fatalf("the watch ended after %q", all)
		}
		all = append(all, w.out.Text())
	}
	return all
}

func (w *watcher) says(part string) {
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

// interrupt interrupts it like Ctrl-C.
func (w *watcher) interrupt() {
	w.t.Helper()
	agenttest.Must(w.t, w.cmd.Process.Signal(syscall.SIGINT))
	if w.out.Scan() {
		w.t.Errorf("one more line: %s", w.out.Text())
	}
	if err := w.cmd.Wait(); err != nil {
		w.t.Errorf("interrupted: %v", err)
	}
}
