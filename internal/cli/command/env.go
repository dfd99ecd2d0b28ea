// Package command holds what the commands share: how the agent is chosen and asked,
// how answers are written, and how errors become messages and exit codes.
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

// Env makes the commands. It holds what tests replace.
type Env struct {
	Getenv                       func(string) string
	Environ                      func() []string  // all variables, as os.Environ
	DefaultSocket, DefaultServer string           // where an agent is looked for
	Poll                         time.Duration    // between two looks at the status while waiting
	Completion                   time.Duration    // for an agent's part of a completion: who presses a key does not wait longer
	Now                          func() time.Time // by which a heartbeat is judged
	Server, Socket               string           // the flags that choose the agent
	ServerTLS                    client.TLSFiles  // and with what it is asked
	Troubleshooting              troubleshoot.Options
	Version                      version.Info // of this program

	given []*pflag.Flag // on the command line, of those that other commands have too
}

// Connect returns a client for the agent that flags and environment choose.
func (c *Env) Connect(cmd *cobra.Command) (*client.Client, error) {
	if err := c.environment(cmd.Flags()); err != nil {
		return nil, err
	}
	files := c.ServerTLS
	if c.Server == "" { // the environment has them for all commands, also for one that asks elsewhere
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

// Asking is what a command runs that asks the agent.
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

// environment sets the flags that were not given from variables such as MESH_AGENT_SERVER.
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

// Answer writes what was asked for, as data or as a page for a person.
func Answer(w io.Writer, style printer.Style, format *printer.Format, v any, page func(*printer.Page)) error {
	if format.Structured() {
		return format.Object(w, v)
	}
	p := printer.NewPage(w, style)
	page(p)
	return p.Flush()
}

// Plain is the form of output of keys and values for people.
const Plain = "plain"

// Answer writes what a command answers to its output.
func (c *Env) Answer(cmd *cobra.Command, format *printer.Format, v any, page func(*printer.Page)) error {
	out := cmd.OutOrStdout()
	return Answer(out, c.Style(cmd), format, v, page)
}

// Tell writes a message, if there is one.
func Tell(w io.Writer, message string) {
	if message != "" {
		fmt.Fprintln(w, printer.Clean(message))
	}
}
