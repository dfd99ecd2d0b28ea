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

const outputDelay = 2 * time.Second // time to wait for the output of a command after its end

// command runs a command in the shell. When it takes too long, all processes that it started are killed. When it
// succeeds, its background processes continue. The error has the last part of its output.
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
	case err == nil, errors.Is(err, exec.ErrWaitDelay): // ErrWaitDelay: it succeeded, and a background process still has its output open
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case bounded.Err() != nil:
		err = fmt.Errorf("it took longer than %s", r.timeout)
	}
	said := strings.TrimSpace(string(printed[max(0, len(printed)-mostPrinted):]))
	return fmt.Errorf("%s: %w: %s", text, err, printer.OneLine(fmt.Errorf("%s", said)))
}

const mostPrinted = 2000 // bytes of a command's output in an error
