// Package top shows how often the clusters change, how long it takes until a change is visible, and how many entries
// there are, by cluster and resource.
package top

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/cli/resource"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

// The sort orders of the rows.
const (
	byRate    = "rate"
	byEntries = "entries"
	byLag     = "lag"
	byAge     = "age"
	byCluster = "cluster"
)

type options struct {
	cluster  string // empty: all
	once     bool
	interval time.Duration
	order    *printer.Format
	format   *printer.Format
}

// New returns the command.
func New(c *command.Env) *cobra.Command {
	o := options{
		order:  printer.NewFormat(byRate, byEntries, byLag, byAge, byCluster),
		format: printer.NewFormat(printer.Plain, printer.JSON, printer.YAML),
	}
	cmd := &cobra.Command{
		Use:   "top [CLUSTER]",
		Short: "Show rates, lag and sizes by cluster and resource",
		Long: "Show the entries, the events per second, the age of the data and the lag, for each cluster and resource. The lag is\n" +
			"the time from the receipt of an event until its data is visible. The command refreshes the table, in place on a\n" +
			"terminal, until you interrupt it. There, s changes the order, / filters by text, and q quits. With --once it shows one table, after one interval.\n\n" +
			"EVENTS/S is the rate since the previous refresh. A list is not an event.",
		Example: "  mesh-agent top\n  mesh-agent top c2 --interval 5s\n  mesh-agent top --once --sort entries",
		Args:    command.Arguments(0, 1, "at most one CLUSTER"),

		ValidArgsFunction: resource.CompleteArgument(c),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.cluster = strings.Join(args, "")
		return c.Asking(func(cmd *cobra.Command, args []string, cl *client.Client) error {
			l := look{options: o, client: cl, now: time.Now}
			show := func(cmd *cobra.Command, _ []string) error {
				s, err := l.next(cmd.Context())
				if err != nil {
					return err
				}
				return c.Answer(cmd, o.format, s, s.page)
			}
			if o.once {
				return l.once(cmd, show)
			}
			return withKeys(cmd.Context(), keyboard(cmd, o.format), func(keys <-chan byte) error {
				l.keys = keys != nil
				return c.WatchKeys(cmd, args, o.interval, show, keys, l.press)
			})
		})(cmd, args)
	}
	cmd.Flags().BoolVar(&o.once, "once", false, "show one table, after one interval")
	command.AddInterval(cmd, &o.interval, "time between two refreshes")
	cmd.Flags().Var(o.order, "sort", "order of the rows: the highest value first, or by cluster")
	return command.WithOutput(cmd, o.format)
}

// keyboard returns the input for keys; nil unless a table is redrawn on a terminal.
func keyboard(cmd *cobra.Command, format *printer.Format) any {
	if _, shown := printer.Terminal(cmd.OutOrStdout()); !shown || format.Structured() {
		return nil
	}
	return cmd.InOrStdin()
}

// once shows the changes within one interval.
func (l *look) once(cmd *cobra.Command, show func(*cobra.Command, []string) error) error {
	if l.interval <= 0 {
		return exit.Usagef("--interval must be above zero")
	}
	if _, err := l.next(cmd.Context()); err != nil {
		return err
	}
	select {
	case <-cmd.Context().Done():
		return cmd.Context().Err()
	case <-time.After(l.interval):
	}
	return show(cmd, nil)
}

func (s *sample) page(p *printer.Page) {
	p.Text("%s on %s, %s: %s a second, %s of %s", s.Agent, s.Node, printer.Painted{Text: s.State, Color: printer.WellColor(s.State == api.StateReady)},
		strconv.FormatFloat(s.EventsPerSecond, 'f', 1, 64)+" events", printer.Counted(s.Entries, "entry", "entries"), printer.Count(s.Clusters, "cluster"))
	if s.keys != "" {
		p.Line("%s", s.keys)
	}
	p.Blank()
	if s.filtered {
		p.Line("No cluster and no resource has the text of the filter.")
		return
	}
	if len(s.Rows) == 0 {
		p.Line("Nothing is read of any cluster yet.")
		return
	}
	printer.Rows(p, table(), s.Rows)
}

func table() printer.Table[row] {
	seconds := func(title string, of func(row) *float64) printer.Column[row] {
		return printer.Column[row]{Title: title, Right: true, Text: func(r row) string {
			if v := of(r); v != nil {
				return span(*v)
			}
			return ""
		}}
	}
	return printer.Table[row]{
		{Title: "CLUSTER", Text: func(r row) string { return r.Cluster }},
		{Title: "RESOURCE", Text: func(r row) string { return r.Resource }},
		{Title: "FRESHNESS", Text: func(r row) string { return r.State }, Color: func(r row) printer.Color { return printer.WellColor(r.State == "synced") }},
		{Title: "ENTRIES", Right: true, Text: func(r row) string { return strconv.Itoa(r.Entries) }},
		{Title: "CHANGE", Right: true, Text: func(r row) string {
			if r.Change == 0 {
				return ""
			}
			return printer.Signed(r.Change)
		}},
		{Title: "REFUSED", Right: true, Text: func(r row) string { return strconv.Itoa(r.Rejected) }},
		{Title: "EVENTS/S", Right: true, Text: func(r row) string {
			if r.EventsPerSecond == nil {
				return ""
			}
			return strconv.FormatFloat(*r.EventsPerSecond, 'f', 1, 64)
		}},
		seconds("AGE", func(r row) *float64 { return r.AgeSeconds }),
		seconds("LAG", func(r row) *float64 { return r.LagMedianSeconds }),
		seconds("LAG P99", func(r row) *float64 { return r.LagP99Seconds }),
		seconds("LAG MAX", func(r row) *float64 { return r.LagMaxSeconds }),
	}
}

// span formats seconds, short times in smaller units: a lag is usually far below a second.
func span(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < time.Millisecond:
		return strconv.FormatFloat(seconds*1e6, 'f', 0, 64) + "µs"
	case d < time.Second:
		return strconv.FormatFloat(seconds*1e3, 'f', 1, 64) + "ms"
	}
	return printer.Duration(d)
}

// sorted sorts the rows by the largest value first; rows with equal values stay sorted by cluster and resource.
func sorted(rows []row, order string) []row {
	of := map[string]func(row) float64{
		byRate:    func(r row) float64 { return value(r.EventsPerSecond) },
		byEntries: func(r row) float64 { return float64(r.Entries) },
		byLag:     func(r row) float64 { return value(r.LagP99Seconds) },
		byAge:     func(r row) float64 { return value(r.AgeSeconds) },
		byCluster: func(row) float64 { return 0 },
	}[order]
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(of(b), of(a)) })
	return rows
}

func value(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}
