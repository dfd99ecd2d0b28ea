package command

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/simtest/sim"
	"github.com/mesh-agent/mesh-agent/simtest/sim/program"
)

// controlFlags are the common flags of all commands of ctl.
type controlFlags struct {
	socket string
	format *printer.Format
}

// newControlCommand returns "ctl" with a command for each request that a simulator supports.
func newControlCommand() *cobra.Command {
	f := controlFlags{format: printer.NewFormat(printer.Text, printer.JSON)}
	cmd := &cobra.Command{
		Use:   "ctl",
		Short: "Break and repair clusters of a running simulator",
		Long: `ctl breaks or repairs clusters of a running mesh-sim. Clusters that share an etcd
share the faults of its server.

The flag --socket or the variable MESH_SIM_SOCKET selects the simulator. Without
them, ctl uses the only running one. Exit codes: 0 done, 1 failed or not possible
now, 2 wrong usage or no simulator.`,
		Example: `  mesh-sim ctl list
  mesh-sim ctl freeze cluster2 --for 30s
  mesh-sim ctl config cluster1 --capability syncedCanaries=false
  mesh-sim ctl mend cluster1`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("no command is called %q: see mesh-sim ctl --help", args[0])}
			}
			return cmd.Help()
		},
	}
	cmd.PersistentFlags().StringVar(&f.socket, "socket", "", "control socket of the simulator (default: $"+program.SocketVariable+", else the only running one)")
	cmd.PersistentFlags().VarP(f.format, "output", "o", "output format")
	for _, c := range program.Commands() {
		cmd.AddCommand(f.command(c))
	}
	return cmd
}

// command returns the command line of one request.
func (f *controlFlags) command(c program.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   c.Usage(),
		Short: c.Help,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != len(c.Args) {
				return usageError{fmt.Errorf("%s takes %d arguments, not %d: mesh-sim ctl %s", c.Name, len(c.Args), len(args), c.Usage())}
			}
			return nil
		},
	}
	switches, values := map[string]*bool{}, map[string]*[]string{}
	for _, flag := range c.Flags {
		if flag.Switch {
			switches[flag.Name] = cmd.Flags().Bool(flag.Name, false, flag.Help)
		} else {
			values[flag.Name] = cmd.Flags().StringArray(flag.Name, nil, flag.Help)
		}
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		q := program.Request{Command: c.Name, Args: args, Flags: map[string][]string{}}
		for name, set := range switches {
			if *set {
				q.Flags[name] = []string{""}
			}
		}
		for name, v := range values {
			if len(*v) > 0 {
				q.Flags[name] = *v
			}
		}
		if err := readValue(c, q.Args, cmd.InOrStdin()); err != nil {
			return usageError{err}
		}
		return f.ask(cmd, q)
	}
	return cmd
}

// readValue replaces a value of "-" by standard input.
func readValue(c program.Command, args []string, in io.Reader) error {
	i := slices.Index(c.Args, program.ArgValue)
	if i < 0 {
		return nil
	}
	if args[i] == "-" {
		text, err := io.ReadAll(in)
		if err != nil {
			return fmt.Errorf("read the value from standard input: %w", err)
		}
		args[i] = string(text)
	}
	if !utf8.ValidString(args[i]) {
		return errors.New("the value is no UTF-8 text")
	}
	return nil
}

func (f *controlFlags) ask(cmd *cobra.Command, q program.Request) error {
	socket := f.socket
	if socket == "" {
		socket = os.Getenv(program.SocketVariable)
	}
	if socket == "" {
		var err error
		if socket, err = program.FindSocket(); err != nil {
			return err
		}
	}
	a, err := program.Ask(cmd.Context(), socket, q)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if f.format.Structured() {
		return f.format.Object(out, a)
	}
	if a.Message != "" {
		_, err = fmt.Fprintln(out, printer.Clean(a.Message))
		return err
	}
	_, err = stateTable().Print(out, all(a.Clusters), printer.StyleFor(out, os.Getenv))
	return err
}

func all(states []sim.State) iter.Seq2[sim.State, error] {
	return func(yield func(sim.State, error) bool) {
		for _, s := range states {
			if !yield(s, nil) {
				return
			}
		}
	}
}

func stateTable() printer.Table[sim.State] {
	return printer.Table[sim.State]{
		{Title: "CLUSTER", Text: func(s sim.State) string { return s.Cluster }},
		{Title: "ID", Right: true, Text: func(s sim.State) string { return strconv.FormatUint(uint64(s.ID), 10) }},
		{Title: "ENDPOINT", Text: func(s sim.State) string { return s.Endpoint }},
		{Title: "STATE", Text: func(s sim.State) string { return s.State }, Color: stateColor},
		{Title: "KEYS", Right: true, Text: func(s sim.State) string {
			if s.Keys == nil {
				return ""
			}
			return strconv.FormatInt(*s.Keys, 10)
		}},
		{Title: "ETCD ID", Text: func(s sim.State) string { return s.EtcdClusterID }},
		{Title: "CACHED IN", Text: func(s sim.State) string { return s.CachedIn }},
		{Title: "NOTES", Text: notes},
	}
}

func stateColor(s sim.State) printer.Color {
	if s.State == "running" {
		return printer.Green
	}
	return printer.Red
}

// notes lists the differences from the state at the start.
func notes(s sim.State) string {
	var out []string
	if s.Mode == "local" {
		out = append(out, "local")
	}
	if s.ThawAt != nil {
		out = append(out, "thaws in "+printer.Duration(time.Until(*s.ThawAt)))
	}
	if s.ClientFile == "" {
		out = append(out, "removed")
	}
	if !s.Heartbeat {
		out = append(out, "no heartbeat")
	}
	if s.Churn > 0 {
		out = append(out, fmt.Sprintf("churn %g/s", s.Churn))
	}
	if s.Changed > 0 {
		out = append(out, fmt.Sprintf("%d keys changed", s.Changed))
	}
	return strings.Join(out, ", ")
}
