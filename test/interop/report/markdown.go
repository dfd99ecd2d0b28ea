package main

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/test/interop"
	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// report is what docs/interop.md says.
type report struct {
	Date     time.Time
	Version  string
	Releases []string
	results  results

	notes []string // the footnotes, in the order of their numbers
	bad   []string // the cells that are not green
}

//go:embed contradictions.md
var contradictions string

const introduction = `# Interoperability with Cilium

Written by ` + "`make interop`" + ` on %s. mesh-agent: %s. Cilium: %s.

On one side of each test runs code of a release of Cilium, unchanged, as a program of its own; on the other side
mesh-agent or its packages. Objects are random, boundary values included, and are compared field by field with what was
written. A cell says how many objects went that way; a cell is green (✓) when none of them differs, is missing, is
refused or should not be there.

- *values*: encoded by the one, decoded and checked by the other.
- *direct*: one publishes a cluster into its etcd, the other reads it from there as a remote cluster.
- *KVStoreMesh*, *our mirror*: in between, Cilium's mirror, or ` + "`mesh-agent mirror`" + `, copies the cluster into another etcd.

An etcd carries every release's bytes alike, so the ways through an etcd are tested with the newest release.
`

func (r *report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, introduction, r.Date.Format("2006-01-02"), r.Version, strings.Join(r.Releases, ", "))
	for _, d := range []interop.Direction{interop.TheyWrite, interop.WeWrite} {
		fmt.Fprintf(&b, "\n## %s\n\n", d)
		r.table(&b, d)
	}
	for i, note := range r.notes {
		fmt.Fprintf(&b, "\n%s %s.\n", superscript(i+1), note)
	}
	r.trials(&b)
	b.WriteString("\n" + contradictions)
	return b.String()
}

func (r *report) table(b *strings.Builder, d interop.Direction) {
	columns := r.columns()
	b.WriteString("| |")
	for _, c := range columns {
		fmt.Fprintf(b, " %s %s |", c.release, c.path)
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(columns)) + "\n")
	for _, kind := range model.Kinds() {
		fmt.Fprintf(b, "| %s |", kind)
		for _, c := range columns {
			fmt.Fprintf(b, " %s |", r.cell(cell{c.release, c.path, d, kind}))
		}
		b.WriteString("\n")
	}
}

// cell says what came of a cell.
func (r *report) cell(c cell) string {
	if reason := cannot(c.release, c.kind); reason != "" {
		return "–" + r.footnote(reason)
	}
	result, ok := r.results.cells[c]
	switch {
	case !ok || result.Objects == 0:
		r.bad = append(r.bad, fmt.Sprintf("%s, %s, %s, %s: was not tested", c.release, c.path, c.direction, c.kind))
		return "not tested"
	case result.Different > 0 || result.Rejected > 0:
		r.bad = append(r.bad, fmt.Sprintf("%s, %s, %s, %s: of %d objects %d differ and %d were rejected",
			c.release, c.path, c.direction, c.kind, result.Objects, result.Different, result.Rejected))
		return fmt.Sprintf("✗ %s of %s%s", number(result.Different+result.Rejected), number(result.Objects), r.footnote(result.Note))
	}
	return "✓ " + number(result.Objects) + r.footnote(result.Note)
}

// footnote returns the mark of a footnote, which is the same for the same text.
func (r *report) footnote(text string) string {
	if text == "" {
		return ""
	}
	i := slices.Index(r.notes, text)
	if i < 0 {
		i = len(r.notes)
		r.notes = append(r.notes, text)
	}
	return superscript(i + 1)
}

func (r *report) trials(b *strings.Builder) {
	if len(r.results.trials) == 0 {
		return
	}
	b.WriteString("\n## Together\n")
	for _, t := range r.results.trials {
		fmt.Fprintf(b, "\n**%s** (%s)\n\n", t.Name, t.Release)
		for _, f := range t.Figures {
			fmt.Fprintf(b, "- %s: %s\n", f.Name, f.Value)
		}
		if t.Note != "" {
			fmt.Fprintf(b, "\n%s.\n", t.Note)
		}
	}
}

// verdict is an error that names the cells which are not green.
func (r *report) verdict() error {
	if len(r.bad) == 0 {
		return nil
	}
	return errors.New("the matrix is not all green:\n  " + strings.Join(r.bad, "\n  "))
}

// number writes 10000 as 10,000.
func number(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// superscript writes the mark of a footnote.
func superscript(n int) string {
	return strings.NewReplacer("0", "⁰", "1", "¹", "2", "²", "3", "³", "4", "⁴",
		"5", "⁵", "6", "⁶", "7", "⁷", "8", "⁸", "9", "⁹").Replace(strconv.Itoa(n))
}

// column is a column of the matrix.
type column struct {
	release string
	path    interop.Path
}

// columns are those that there must be: the values of every release, and every path
// of the newest one.
func (r *report) columns() []column {
	var all []column
	for _, release := range r.Releases {
		all = append(all, column{release, interop.Values})
	}
	if slices.Contains(r.Releases, interop.Newest) {
		for _, p := range []interop.Path{interop.Direct, interop.ByCilium, interop.ByUs} {
			all = append(all, column{interop.Newest, p})
		}
	}
	return all
}

// cannot says why a release cannot have a kind; it is empty where it can.
func cannot(release string, kind model.Kind) string {
	switch {
	case kind == model.EndpointSlices && before(release, "1.20"):
		return "endpoint slices exist since 1.20"
	case kind == model.ServiceExports && before(release, "1.17"):
		return "service exports exist since 1.17"
	}
	return ""
}

// before compares releases of the same length of numbers: 1.16.2 is before 1.17.
func before(release, minor string) bool { return release[:len(minor)] < minor }
