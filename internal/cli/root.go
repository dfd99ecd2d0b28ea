// Package cli is the command line of the program. Each subject has a package below this one.
package cli

import (
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc/grpclog"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/base/logging"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/base/version"
	"github.com/mesh-agent/mesh-agent/internal/cli/bugreport"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/cli/configcheck"
	"github.com/mesh-agent/mesh-agent/internal/cli/demo"
	"github.com/mesh-agent/mesh-agent/internal/cli/describe"
	"github.com/mesh-agent/mesh-agent/internal/cli/explain"
	"github.com/mesh-agent/mesh-agent/internal/cli/get"
	"github.com/mesh-agent/mesh-agent/internal/cli/identity"
	"github.com/mesh-agent/mesh-agent/internal/cli/kvstore"
	"github.com/mesh-agent/mesh-agent/internal/cli/lookup"
	"github.com/mesh-agent/mesh-agent/internal/cli/policy"
	"github.com/mesh-agent/mesh-agent/internal/cli/render"
	"github.com/mesh-agent/mesh-agent/internal/cli/run"
	"github.com/mesh-agent/mesh-agent/internal/cli/status"
	"github.com/mesh-agent/mesh-agent/internal/cli/top"
	"github.com/mesh-agent/mesh-agent/internal/cli/troubleshoot"
	"github.com/mesh-agent/mesh-agent/internal/cli/users"
	"github.com/mesh-agent/mesh-agent/internal/cli/xds"
	"github.com/mesh-agent/mesh-agent/pkg/api"
)

// Main runs a command line of this release of the program, and returns its exit code.
func Main(release string, args []string) int {
	silenceGRPC()
	return command.Execute(New(release), args)
}

// New returns the whole command line of the program.
func New(release string) *cobra.Command {
	v := version.Of(release)
	c := &command.Env{Getenv: os.Getenv, Environ: os.Environ, Poll: 500 * time.Millisecond, Completion: time.Second, Now: time.Now, Version: v}
	return Root(c, run.Commands(v)...)
}

// silenceGRPC keeps gRPC's own log off stderr: it has another format than ours, and a remote server controls its
// amount and some of its texts. The errors of calls contain the reason why a connection fails. A user can enable
// gRPC's log with its environment variable.
func silenceGRPC() {
	if os.Getenv("GRPC_GO_LOG_SEVERITY_LEVEL") == "" {
		grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
	}
}

// Root returns the whole command line: the commands that use a running agent or a kvstore, and others.
func Root(c *command.Env, others ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use:   "mesh-agent",
		Short: "Shows all clusters of a mesh in one view",
		Long: "mesh-agent reads the key-value stores of all clusters of a mesh and merges them into one view of nodes,\n" +
			"services, identities and addresses, with the age of the data.",
		Args:          cobra.ArbitraryArgs, // HelpOrUnknown reports an unknown command, as wrong usage
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          command.HelpOrUnknown,

		PersistentPreRun: func(cmd *cobra.Command, _ []string) { c.Given(cmd) },
	}
	root.Version = c.Version.Version
	root.SuggestionsMinimumDistance = 2
	root.SetFlagErrorFunc(config.RefusedFlag)
	flags := root.PersistentFlags()
	flags.StringVar(&c.Server, "server", "", "URL of the agent to ask, such as http://127.0.0.1:9979")
	flags.StringVar(&c.Socket, "socket", "", "unix socket of the agent to ask; default: "+api.DefaultSocket+", then "+api.DefaultListen)
	flags.StringVar(&c.ServerTLS.CA, "server-ca-file", "", "certificate authorities for a --server with https://; default: those of the system")
	flags.StringVar(&c.ServerTLS.Cert, "server-cert-file", "", "client certificate for --server")
	flags.StringVar(&c.ServerTLS.Key, "server-key-file", "", "key of the client certificate")
	group := func(title string, commands ...*cobra.Command) {
		root.AddGroup(&cobra.Group{ID: title, Title: title + ":"})
		for _, one := range commands {
			one.GroupID = title
		}
		root.AddCommand(commands...)
	}
	group("See the mesh", append(command.WithProgress("Waiting for the agent", status.New(c), get.New(c), describe.New(c), lookup.New(c), top.New(c)), explain.New(c))...)
	group("Find what is wrong", slices.Concat(command.WithProgress("Checking", troubleshoot.New(c), configcheck.New(c)),
		command.WithProgress("Waiting for the kvstore", kvstore.New(c)), command.WithProgress("Collecting", bugreport.New(c)),
		command.WithProgress("Waiting for the agent", logLevelCommand(c)))...)
	group("Run", append(others, demo.New(c))...)
	group("Use the data elsewhere", append(command.WithProgress("Rendering", render.New(c)), command.WithProgress("Waiting for the agent", xds.New(c))...)...)
	group("Administer", append(command.WithProgress("Waiting for the kvstore", identity.New(c), users.New(c)), command.WithProgress("Waiting for the agent", policy.New(c))...)...)
	root.AddCommand(newVersionCommand(c.Version))
	completeFlags(root)
	return root
}

// completeFlags adds completion of values to the flags of a command and of all its subcommands.
func completeFlags(cmd *cobra.Command) {
	note := func(f *pflag.Flag) {
		var values []string
		switch format, isFormat := f.Value.(*printer.Format); {
		case isFormat:
			values = strings.Split(strings.NewReplacer(printer.JSONPath, printer.JSONPath+"=", printer.CustomColumns, printer.CustomColumns+"=").Replace(format.Type()), "|")
		case f.Name == "log-level":
			values = logging.Levels()
		case f.Name == "log-format":
			values = logging.Formats()
		default:
			return
		}
		// It fails for a flag that has a completion already, which is then a better one.
		_ = cmd.RegisterFlagCompletionFunc(f.Name, command.Complete(func(*cobra.Command, []string) []string { return values }))
	}
	cmd.LocalFlags().VisitAll(note)
	for _, sub := range cmd.Commands() {
		completeFlags(sub)
	}
}
