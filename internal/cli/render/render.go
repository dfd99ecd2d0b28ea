// Package render writes files from templates and the agent's data, and keeps them up to date.
package render

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

// options are the flags.
type options struct {
	templates   []string
	exec, check string
	zone        string
	wait        time.Duration
	timeout     time.Duration
	once        bool
	dryRun      bool
	refuseEmpty bool

	allowControl bool
}

// New returns the command.
func New(c *command.Env) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "render -t TEMPLATE=FILE...",
		Short: "Write files from templates and the agent's data, and keep them up to date",
		Long: "Write files from templates and the agent's data, and keep them up to date.\n\n" +
			"Templates are Go templates (docs/render.md) with the functions of sprig and\n\n" +
			"  backends \"NAMESPACE/NAME\" \"PORT\"   where connections go: .Now, .Groups, .Known, .Unconfirmed\n" +
			"  services, nodes, clusters           lists, with filters such as \"namespace=shop\"\n" +
			"  upstreamName \"NAMESPACE/NAME\"       a name of its own for each service; hostsName for nodes\n" +
			"  nginxQuote, haproxyQuote            a text as one parameter; toJson for YAML\n\n" +
			"Templates get only names that are valid in Kubernetes, and texts without control characters.\n\n" +
			"The command replaces a file atomically, only if it differs, and only after the agent has read every cluster. While\n" +
			"the agent does not answer, files stay unchanged. It writes a mounted file in place.",
		Example: "  mesh-agent render -t nginx.tmpl=/etc/nginx/upstreams.conf --exec \"nginx -t && nginx -s reload\"\n" +
			"  mesh-agent render -t hosts.tmpl=/dev/stdout --once --dry-run",
		Args: command.Arguments(0, 0, "no arguments"),
		RunE: c.Asking(func(cmd *cobra.Command, _ []string, cl *client.Client) error {
			r, err := newRenderer(o, cl, cmd.OutOrStdout(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			if o.once || o.dryRun {
				return r.once(ctx)
			}
			if err := r.follow(ctx); ctx.Err() == nil {
				return err
			}
			return nil // ended by a signal
		}),
	}
	f := cmd.Flags()
	f.StringArrayVarP(&o.templates, "template", "t", nil, "template and file, as TEMPLATE=FILE; repeat the flag for more")
	f.StringVar(&o.exec, "exec", "", "shell command to run after a file has changed; repeated until it succeeds")
	f.StringVar(&o.check, "check", "", "shell command that checks each new file ($FILE) before any file is replaced")
	f.StringVar(&o.zone, "from", "", "zone of the clients, for the choice of backends; default: the zone of the agent")
	f.DurationVar(&o.wait, "wait", 250*time.Millisecond, "time to wait for more changes after a change; in total at most four times as long")
	f.DurationVar(&o.timeout, "timeout", 30*time.Second, "time limit of the commands of --check and --exec")
	f.BoolVar(&o.once, "once", false, "write the files once, and end")
	f.BoolVar(&o.dryRun, "dry-run", false, "write to the standard output, once, and run no command")
	f.BoolVar(&o.refuseEmpty, "refuse-empty", false, "do not replace a file with an empty one")
	f.BoolVar(&o.allowControl, "allow-control-characters", false, "allow control characters in the result; in data they are always escaped")
	return cmd
}

// target is a template and the file that it is written to.
type target struct{ template, file string }

// renderer writes the files. Only one goroutine may use it.
type renderer struct {
	options
	targets  []target
	client   *client.Client
	out, log io.Writer
	checks   *checks
	used     map[string]bool // resources that the templates have requested
	inPlace  map[string]bool // files that cannot be replaced as a whole, after this was reported
	pending  bool            // whether the command must still run
}

func newRenderer(o options, cl *client.Client, out, log io.Writer) (*renderer, error) {
	r := &renderer{options: o, client: cl, out: out, log: log, used: make(map[string]bool), inPlace: make(map[string]bool)}
	r.checks = &checks{say: r.say, said: make(map[string]bool)}
	if len(o.templates) == 0 {
		return nil, usagef("give at least one template: -t TEMPLATE=FILE")
	}
	if o.wait < 0 || o.timeout <= 0 {
		return nil, usagef("--wait must not be negative, --timeout must be above zero")
	}
	files := make(map[string]bool)
	for _, text := range o.templates {
		template, file, ok := strings.Cut(text, "=")
		if !ok || template == "" || file == "" {
			return nil, usagef("-t %q: want TEMPLATE=FILE", text)
		}
		if files[file] {
			return nil, usagef("-t %q: the file is written from another template, too", text)
		}
		files[file] = true
		r.targets = append(r.targets, target{template, file})
	}
	return r, nil
}

func usagef(format string, args ...any) error { return exit.Usagef(format, args...) }

// say logs a message.
func (r *renderer) say(format string, args ...any) {
	fmt.Fprintln(r.log, printer.Clean(fmt.Sprintf(format, args...)))
}

var errNotReady = errors.New("the agent does not know every cluster yet")

// ready fails while the agent has not read all clusters that it waits for.
func (r *renderer) ready(ctx context.Context) error {
	status, err := r.client.Status(ctx)
	if err == nil && (!status.Ready || knowsNothing(status)) {
		err = errNotReady
	}
	return err
}

// knowsNothing reports whether there are clusters, but the agent has read none since its start: after the sync
// timeout it is ready all the same.
func knowsNothing(s *api.Status) bool {
	all := s.Clusters
	if s.OwnCluster != nil {
		all = append(slices.Clone(all), *s.OwnCluster)
	}
	return len(all) > 0 && !slices.ContainsFunc(all, func(c api.Cluster) bool { return c.Synced.Nodes && c.Synced.Services })
}

// once writes the files, and runs the command if one has changed.
func (r *renderer) once(ctx context.Context) error {
	if err := r.ready(ctx); err != nil {
		return err
	}
	if err := r.write(ctx); err != nil {
		return err
	}
	return r.runPending(ctx)
}
