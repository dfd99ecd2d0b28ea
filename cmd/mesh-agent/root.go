package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
	"github.com/mesh-agent/mesh-agent/pkg/api/transport"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/troubleshoot"
)

// Where an agent listens, and is looked for.
const (
	defaultSocket = api.DefaultSocket
	defaultListen = api.DefaultListen
)

// The exit codes of every command (interface.md).
const (
	exitOK     = 0
	exitUnwell = 1 // not well, not found, or failed
	exitUsage  = 2 // used wrongly, or the agent cannot be reached
)

// usageError is a mistake of whoever called the command.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errUnwell ends a command whose answer, which was printed, is not a good one.
var errUnwell = errors.New("not well")

// errFaulty ends a command that has printed what can never work.
var errFaulty = errors.New("faulty")

// saidError ends a command whose error was told already.
type saidError struct{ error }

func (e saidError) Unwrap() error { return e.error }

// execute runs a command line and returns its exit code. Errors become a line
// on stderr.
func execute(root *cobra.Command, args []string) int {
	root.SetArgs(args)
	root.InitDefaultCompletionCmd() // which takes the output that root has now
	if cmd, _, err := root.Find([]string{"completion"}); err == nil {
		cmd.Args, cmd.RunE = cobra.ArbitraryArgs, helpOrUnknown // an unknown shell is wrong usage
	}
	cmd, err := root.ExecuteC()
	if err == nil {
		return exitOK
	}
	if errors.Is(err, errUnwell) {
		return exitUnwell
	}
	if errors.Is(err, errFaulty) {
		return exitUsage
	}
	if _, said := errors.AsType[saidError](err); said {
		return exitCode(err)
	}
	hint := ""
	if _, ok := errors.AsType[usageError](err); ok {
		hint = fmt.Sprintf(" (see '%s --help')", cmd.CommandPath())
	} else if errors.Is(err, client.ErrUnreachable) {
		hint = unreachableHint(err)
	}
	fmt.Fprintf(root.ErrOrStderr(), "Error: %s%s\n", cleanLines(err.Error()), hint)
	return exitCode(err)
}

// cleanLines cleans each line of a text that others may have written a part of.
func cleanLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = printer.Clean(strings.ReplaceAll(lines[i], "\t", "    "))
	}
	return strings.Join(lines, "\n")
}

// unreachableHint says what to do about an agent that does not answer.
func unreachableHint(err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return "; its socket is for its owner and group only: become one of them (root, mostly), or ask over TCP with --server"
	}
	return "; is it running? --server or --socket choose another one"
}

// exitCode maps an error to an exit code.
func exitCode(err error) int {
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[*transport.ListenError](err); ok {
		return exitUsage
	}
	if p, ok := errors.AsType[*api.Problem](err); ok && p.Status == http.StatusBadRequest {
		return exitUsage
	}
	if errors.Is(err, client.ErrUnreachable) {
		return exitUsage
	}
	if _, ok := errors.AsType[*kvstore.KeyError](err); ok {
		return exitUsage // the kvstore does not answer, or not us
	}
	return exitUnwell
}

// cli makes the commands. It holds what tests replace.
type cli struct {
	getenv                       func(string) string
	environ                      func() []string  // all variables, as os.Environ
	defaultSocket, defaultServer string           // where an agent is looked for
	poll                         time.Duration    // between two looks at the status while waiting
	now                          func() time.Time // by which a heartbeat is judged
	server, socket               string           // the flags that choose the agent
	serverTLS                    client.TLSFiles  // and with what it is asked
	troubleshooting              troubleshoot.Options
}

// newRootCommand returns the whole command line: run, the commands that ask a
// running agent, and extra ones.
func newRootCommand(run *cobra.Command, extra ...*cobra.Command) *cobra.Command {
	c := &cli{getenv: os.Getenv, environ: os.Environ, poll: 500 * time.Millisecond, now: time.Now}
	return c.root(append([]*cobra.Command{run}, extra...)...)
}

func (c *cli) root(others ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use:   "mesh-agent",
		Short: "Sees all clusters of a mesh as one",
		Long: "mesh-agent reads what the clusters of a mesh publish in their key-value stores and shows it as one:\n" +
			"nodes, services, identities and addresses, each with how fresh it is.",
		Args:          cobra.ArbitraryArgs, // an unknown command is answered below, as wrong usage
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          helpOrUnknown,
	}
	root.Version = version()
	root.SuggestionsMinimumDistance = 2
	root.SetFlagErrorFunc(refusedFlag)
	flags := root.PersistentFlags()
	flags.StringVar(&c.server, "server", "", "URL of the agent to ask, such as http://127.0.0.1:9979")
	flags.StringVar(&c.socket, "socket", "", "unix socket of the agent to ask; default: "+defaultSocket+", then "+defaultListen)
	flags.StringVar(&c.serverTLS.CA, "server-ca-file", "", "authorities of a --server that is https://...; default: those of the system")
	flags.StringVar(&c.serverTLS.Cert, "server-cert-file", "", "certificate to show to it")
	flags.StringVar(&c.serverTLS.Key, "server-key-file", "", "key of that certificate")
	root.AddCommand(others...)
	root.AddCommand(c.statusCommand(), c.getCommand(), c.describeCommand(), c.lookupCommand(), c.explainCommand(), c.bugreportCommand(), c.logLevelCommand(), c.configCommand(), c.policyCommand(), c.kvstoreCommand(), c.identityCommand(), c.usersCommand(), c.troubleshootCommand(), newVersionCommand())
	c.completeFlags(root)
	return root
}

// helpOrUnknown is for a command that only has others below it.
func helpOrUnknown(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	similar := ""
	if names := cmd.SuggestionsFor(args[0]); len(names) > 0 {
		similar = "; did you mean " + strings.Join(names, " or ") + "?"
	}
	return usagef("unknown command %q%s", args[0], similar)
}

// group returns a command that only has others below it.
func group(name, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: name, Short: short, Args: cobra.ArbitraryArgs, RunE: helpOrUnknown,
		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(commands...)
	return cmd
}

// connect returns a client for the agent that flags and environment choose.
func (c *cli) connect(cmd *cobra.Command) (*client.Client, error) {
	if err := c.environment(cmd.Flags()); err != nil {
		return nil, err
	}
	cl, err := client.New(client.Options{
		Server: c.server, Socket: c.socket, TLS: c.tlsFiles(),
		DefaultServer: c.defaultServer, DefaultSocket: c.defaultSocket,
	})
	if err != nil {
		return nil, usageError{err}
	}
	return cl, nil
}

// tlsFiles are the certificates for a --server. Where the environment has them for
// all commands, one that asks elsewhere does without.
func (c *cli) tlsFiles() client.TLSFiles {
	if c.server == "" {
		return client.TLSFiles{}
	}
	return c.serverTLS
}

// environment sets the flags that were not given from variables such as
// MESH_AGENT_SERVER.
func (c *cli) environment(flags *pflag.FlagSet) error {
	chosen := flags.Changed("server") || flags.Changed("socket")
	skip := func(f *pflag.Flag) bool {
		isTarget := f.Name == "server" || f.Name == "socket"
		return f.Changed || f.Name == "help" || isTarget && chosen
	}
	if err := setFromEnvironment(flags, c.getenv, skip, make(map[string]string)); err != nil {
		return usageError{err}
	}
	return nil
}

// arguments returns a check of the number of arguments.
func arguments(atLeast, atMost int, form string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < atLeast || len(args) > atMost {
			return usagef("want %s, not %d arguments", form, len(args))
		}
		return nil
	}
}

// noArgs refuses arguments.
func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("unexpected argument %q", args[0])
	}
	return nil
}
