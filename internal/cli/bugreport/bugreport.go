// Package bugreport writes an archive with all data that explains an agent's state, without secrets.
package bugreport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/base/safetext"
	"github.com/mesh-agent/mesh-agent/internal/base/version"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

type reportOptions struct {
	file     string // empty: a name with the node and the time; "-": stdout
	maxItems int    // of each list
	timeout  time.Duration
}

// New returns the command.
func New(c *command.Env) *cobra.Command {
	var o reportOptions
	cmd := &cobra.Command{
		Use:   "bugreport",
		Short: "Write the state of the agent into one archive, for a bug report",
		Long: "Write the state of the agent into one .tar.gz: status, lists, health, conflicts, events, metrics, goroutines,\n" +
			"settings, and the client files of the mesh directory if they are on this machine.\n\n" +
			"The command never opens private keys. The archive contains no passwords, no tokens, no user names from URLs, and only\n" +
			"values that are known to be harmless. The file errors.txt in the archive lists missing parts.",
		Example: "  mesh-agent bugreport\n  kubectl exec POD -- mesh-agent bugreport -f - > report.tar.gz",
		Args:    command.NoArgs,
		RunE:    c.Asking(func(cmd *cobra.Command, _ []string, cl *client.Client) error { return bugreport(c, cmd, cl, o) }),
	}
	f := cmd.Flags()
	f.StringVarP(&o.file, "file", "f", "", "the archive; - is stdout (default mesh-agent-bugreport-NODE-TIME.tar.gz)")
	f.IntVar(&o.maxItems, "max-items", 100_000, "maximum number of items of each list")
	f.DurationVar(&o.timeout, "timeout", 30*time.Second, "time limit of each part")
	return cmd
}

func bugreport(c *command.Env, cmd *cobra.Command, cl *client.Client, o reportOptions) (err error) {
	if o.maxItems < 1 || o.timeout <= 0 {
		return exit.Usagef("--max-items and --timeout must be above zero")
	}
	r := &report{options: o, client: cl, now: time.Now().UTC().Truncate(time.Second), flags: config.FlagNames(cmd.Root()), environ: c.Environ, program: c.Version}
	ctx, cancel := context.WithTimeout(cmd.Context(), o.timeout)
	r.status, r.statusErr = cl.Status(ctx)
	cancel()
	if o.file == "-" {
		err = r.write(cmd.Context(), cmd.OutOrStdout())
	} else {
		err = r.writeFile(cmd.Context(), cmp.Or(o.file, r.name()+".tar.gz"), cmd.OutOrStdout())
	}
	if err != nil {
		return err
	}
	if n := len(r.failures); n > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s could not be collected: errors.txt in the archive says why.\n", printer.Count(n, "part"))
	}
	if errors.Is(r.statusErr, client.ErrUnreachable) {
		return r.statusErr
	}
	return nil
}

// report is an archive that is being written.
type report struct {
	options   reportOptions
	client    *client.Client
	now       time.Time
	flags     map[string]bool // names of the program's flags
	environ   func() []string
	program   version.Info
	status    *api.Status // nil when the agent gave none
	statusErr error
	archive   *archive
	failures  []string
}

// name returns the name of the archive, and of the folder in it.
func (r *report) name() string {
	node := "unknown"
	if r.status != nil {
		node = r.status.Agent.Node
	} else if host, err := os.Hostname(); err == nil {
		node = host
	}
	return fmt.Sprintf("mesh-agent-bugreport-%s-%s", safetext.FileName(node), r.now.Format("20060102T150405Z"))
}

// writeFile writes the archive to a file that only its owner may read, and prints its name. It does not replace an
// existing file.
func (r *report) writeFile(ctx context.Context, path string, out io.Writer) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("the archive cannot be created, -f names another place: %w", err)
	}
	if err := cmp.Or(r.write(ctx, f), f.Close()); err != nil {
		_ = os.Remove(path) // do not leave an incomplete archive
		return fmt.Errorf("writing %s: %w", path, err)
	}
	_, err = fmt.Fprintln(out, path)
	return err
}

// write writes the archive. It fails only when the archive cannot be written: a part that fails becomes a line of
// errors.txt.
func (r *report) write(ctx context.Context, w io.Writer) error {
	r.archive = newArchive(w, r.name(), r.now)
	for _, part := range r.parts() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		command.Progress(ctx).Say("Collecting %s", part.name)
		if err := r.collect(ctx, part); err != nil {
			r.fail(part.name, err)
		}
	}
	failures := "Everything was collected.\n"
	if len(r.failures) > 0 {
		failures = strings.Join(r.failures, "\n") + "\n"
	}
	r.archive.add("errors.txt", "what could not be collected", []byte(failures))
	return r.archive.close()
}

func (r *report) collect(ctx context.Context, p part) error {
	ctx, cancel := context.WithTimeout(ctx, r.options.timeout)
	defer cancel()
	err := p.collect(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("not complete after %s (--timeout gives it more): %w", r.options.timeout, err)
	}
	return err
}

func (r *report) fail(what string, err error) {
	r.failures = append(r.failures, what+": "+strings.ReplaceAll(err.Error(), "\n", "; "))
}
