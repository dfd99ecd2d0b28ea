package members

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/mesh-agent/mesh-agent/simtest/children"
)

// Process is a mesh-agent process.
type Process struct {
	Name, Socket, Log string
	Command           []string // the program and its arguments

	cmd   *exec.Cmd // nil before the first Start
	ended chan struct{}
	err   error // set before ended is closed
}

// stopTimeout is how long a process may take to end before it is killed.
const stopTimeout = 15 * time.Second

// Start starts the process, which must not run. Its output is appended to its log.
func (p *Process) Start() error {
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644) //nolint:gosec // nothing in it is secret
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the process has its own
	p.cmd = exec.Command(p.Command[0], p.Command[1:]...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = children.Attributes()
	p.ended = make(chan struct{})
	if err := p.cmd.Start(); err != nil {
		p.cmd = nil
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	cmd, ended := p.cmd, p.ended
	go func() { // it ends with the process, which Wait waits for
		p.err = cmd.Wait()
		close(ended)
	}()
	return nil
}

// Signal sends a signal to the process; it has no effect on one that has ended.
func (p *Process) Signal(s syscall.Signal) {
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(s) // it may have ended
	}
}

// Interrupt asks the process to end.
func (p *Process) Interrupt() { p.Signal(syscall.SIGTERM) }

// Kill ends it like kill -9, and waits for its end.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	<-p.ended
}

// Running reports whether it runs.
func (p *Process) Running() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Killed reports whether it was ended by a signal that a process cannot handle.
func (p *Process) Killed() bool {
	if p.cmd == nil || p.Running() {
		return false
	}
	exit, ok := errors.AsType[*exec.ExitError](p.err)
	return ok && exit.ExitCode() < 0
}

// Wait waits until the process has ended, after Interrupt. It returns an error if the process had to be killed, or
// ended by itself or with a failure.
func (p *Process) Wait() error {
	if p.cmd == nil {
		return nil
	}
	select {
	case <-p.ended:
	case <-time.After(stopTimeout):
		p.Kill()
		return fmt.Errorf("%s did not end within %s of SIGTERM; its log is %s", p.Name, stopTimeout, p.Log)
	}
	if p.Killed() {
		return nil
	}
	if p.err != nil {
		return fmt.Errorf("%s: %w; its log is %s", p.Name, p.err, p.Log)
	}
	return nil
}
