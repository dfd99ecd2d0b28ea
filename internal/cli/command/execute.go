package command

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/serve/transport"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// Execute runs a command line and returns its exit code. It writes an error as a line to stderr.
func Execute(root *cobra.Command, args []string) int {
	root.SetArgs(args)
	root.InitDefaultCompletionCmd() // uses root's output at this time
	if cmd, _, err := root.Find([]string{"completion"}); err == nil {
		cmd.Args, cmd.RunE = cobra.ArbitraryArgs, HelpOrUnknown // an unknown shell is wrong usage
		completeWithoutPackage(cmd)
	}
	cmd, err := root.ExecuteC()
	if err == nil {
		return exit.OK
	}
	if errors.Is(err, exit.ErrUnwell) {
		return exit.Unwell
	}
	if errors.Is(err, exit.ErrFaulty) {
		return exit.Usage
	}
	if _, said := errors.AsType[exit.ReportedError](err); said {
		return exitCode(err)
	}
	hint := ""
	if _, ok := errors.AsType[exit.UsageError](err); ok {
		hint = fmt.Sprintf(" (see '%s --help')", cmd.CommandPath())
	} else if errors.Is(err, client.ErrUnreachable) {
		hint = unreachableHint(err)
	}
	fmt.Fprintf(root.ErrOrStderr(), "Error: %s%s\n", printer.CleanLines(err.Error()), hint)
	return exitCode(err)
}

// unreachableHint returns the remedy when an agent does not answer.
func unreachableHint(err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return "; only the owner and group of the socket can use it: run the command as one of them (usually root), or use TCP with --server"
	}
	return "; is it running? --server or --socket choose another one"
}

func exitCode(err error) int {
	_, usage := errors.AsType[exit.UsageError](err)
	_, listening := errors.AsType[*transport.ListenError](err)
	_, asking := errors.AsType[*kvstore.KeyError](err) // the kvstore does not answer, or refuses us
	p, answered := errors.AsType[*api.Problem](err)
	if usage || listening || asking || errors.Is(err, client.ErrUnreachable) || answered && p.Status == http.StatusBadRequest {
		return exit.Usage
	}
	return exit.Unwell
}
