// Package command has the code that the commands share: they choose the agent and send requests to it, write answers,
// and convert errors to messages and exit codes.
package command

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/base/version"
	"github.com/mesh-agent/mesh-agent/internal/diagnose/troubleshoot"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

// Resolve returns the settings of a command that has some of run's flags.
func (c *Env) Resolve(cmd *cobra.Command, s *config.Settings) (config.Config, error) {
	if err := c.environment(cmd.Flags()); err != nil {
		return config.Config{}, err
	}
	return s.Load(c.Getenv)
}

// Env creates the commands. Its fields are the dependencies that tests replace.
type Env struct {
	Getenv                       func(string) string
	Environ                      func() []string  // all variables, as os.Environ
	DefaultSocket, DefaultServer string           // where to find an agent
	Poll                         time.Duration    // interval of status requests while waiting
	Completion                   time.Duration    // timeout of the agent's part of a completion, for which the user waits
	Now                          func() time.Time // the time that the age of a heartbeat is computed with
	Server, Socket               string           // the flags that choose the agent
	ServerTLS                    client.TLSFiles  // the TLS files for --server
	Troubleshooting              troubleshoot.Options
	Version                      version.Info // of this program

	given []*pflag.Flag // flags of the command line that other commands have, too
}

// Connect returns a client for the agent that flags and environment choose.
func (c *Env) Connect(cmd *cobra.Command) (*client.Client, error) {
	if err := c.environment(cmd.Flags()); err != nil {
		return nil, err
	}
	files := c.ServerTLS
	if c.Server == "" { // the environment sets them for all commands, also for one that uses the socket
		files = client.TLSFiles{}
	}
	cl, err := client.New(client.Options{
		Server: c.Server, Socket: c.Socket, TLS: files, DefaultServer: c.DefaultServer, DefaultSocket: c.DefaultSocket,
	})
	if err != nil {
		return nil, exit.UsageError{Err: err}
	}
	return cl, nil
}

// Asking returns the function of a command that sends requests to the agent.
func (c *Env) Asking(ask func(cmd *cobra.Command, args []string, cl *client.Client) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		cl, err := c.Connect(cmd)
		if err != nil {
			return err
		}
		defer cl.Close()
		return ask(cmd, args, cl)
	}
}

// environment sets the flags that are not on the command line from variables such as MESH_AGENT_SERVER.
func (c *Env) environment(flags *pflag.FlagSet) error {
	chosen := flags.Changed("server") || flags.Changed("socket")
	skip := func(f *pflag.Flag) bool {
		isTarget := f.Name == "server" || f.Name == "socket"
		return f.Changed || f.Name == "help" || isTarget && chosen
	}
	if err := config.SetFromEnvironment(flags, c.Getenv, skip, make(map[string]string)); err != nil {
		return exit.UsageError{Err: err}
	}
	return nil
}

// Answer writes an answer, as data or as a page for users.
func Answer(w io.Writer, style printer.Style, format *printer.Format, v any, page func(*printer.Page)) error {
	if format.Structured() {
		return format.Object(w, v)
	}
	p := printer.NewPage(w, style)
	page(p)
	return p.Flush()
}

// Plain is the output format of keys and values for users.
const Plain = "plain"

// Answer writes the answer of a command to the command's output.
func (c *Env) Answer(cmd *cobra.Command, format *printer.Format, v any, page func(*printer.Page)) error {
	out := cmd.OutOrStdout()
	return Answer(out, c.Style(cmd), format, v, page)
}

// Note writes a message, if there is one.
func Note(w io.Writer, message string) {
	if message != "" {
		fmt.Fprintln(w, printer.Clean(message))
	}
}
