package render

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
)

// runPending runs the command if a file has changed since it last succeeded.
func (r *renderer) runPending(ctx context.Context) error {
	if !r.pending {
		return nil
	}
	if err := r.command(ctx, r.exec); err != nil {
		return fmt.Errorf("--exec: %w", err)
	}
	r.pending = false
	r.say("ran %s", r.exec)
	return nil
}

const outputDelay = 2 * time.Second // how long the output of a command is waited for after its end

// command lets the shell run a command. All processes that it starts are killed when it takes too
// long. When it succeeds, those that go on in the background stay. The error has the end of what it printed.
func (r *renderer) command(ctx context.Context, text string, environment ...string) error {
	bounded, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	cmd := exec.CommandContext(bounded, "/bin/sh", "-c", text)
	cmd.Env = append(os.Environ(), environment...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = outputDelay
	printed, err := cmd.CombinedOutput()
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay): // the latter: it has succeeded, and something in the background has its output
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case bounded.Err() != nil:
		err = fmt.Errorf("it took longer than %s", r.timeout)
	}
	said := strings.TrimSpace(string(printed[max(0, len(printed)-mostPrinted):]))
	return fmt.Errorf("%s: %w: %s", text, err, printer.OneLine(fmt.Errorf("%s", said)))
}

const mostPrinted = 2000 // bytes of a command's output, in an error
