package main

import (
	"cmp"
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

` + "`make interop`" + ` wrote this page on %s. mesh-agent: %s. Cilium: %s.

One side of each test is code of a Cilium release, unchanged, as a separate program. The other side is mesh-agent or its
packages. Objects are random and include boundary values. The test compares each object that arrives, field by field, with
the object that was written. A cell shows the number of objects. It has a check mark (✓) when all of them arrived and were
equal, and the reader accepted them and found no others.

- *values*: one side encodes the objects, the other side decodes and checks them.
- *direct*: one side publishes a cluster to its etcd, the other side reads it from there as a remote cluster.
- *KVStoreMesh*, *our mirror*: Cilium's mirror, or ` + "`mesh-agent mirror`" + `, copies the cluster to another etcd, from which
  the other side reads it.

etcd transports the bytes of all releases in the same way. For this reason, these tables test only the newest release through
etcd. Older releases read one published cluster from etcd, directly and through ` + "`mesh-agent mirror`" + ` (below).
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
		return fmt.Sprintf("✗ %s of %s", number(result.Different+result.Rejected), number(result.Objects))
	}
	return "✓ " + number(result.Objects)
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

// trials writes a table for each name, with a column for each release.
func (r *report) trials(b *strings.Builder) {
	if len(r.results.trials) == 0 {
		return
	}
	b.WriteString("\n## Both sides at work on the same data\n")
	var written []string
	for _, t := range r.results.trials {
		if !slices.Contains(written, t.Name) {
			written = append(written, t.Name)
			r.trial(b, t.Name)
		}
	}
}

func (r *report) trial(b *strings.Builder, name string) {
	var releases, figures []string
	values := map[string]string{} // by release and figure
	for _, t := range r.results.trials {
		if t.Name != name {
			continue
		}
		releases = append(releases, t.Release)
		for _, f := range t.Figures {
			if !slices.Contains(figures, f.Name) {
				figures = append(figures, f.Name)
			}
			values[releases[len(releases)-1]+"\x00"+f.Name] = f.Value
		}
	}
	fmt.Fprintf(b, "\n### %s\n\n| | %s |\n|---%s|\n", name, strings.Join(releases, " | "), strings.Repeat("|---:", len(releases)))
	for _, f := range figures {
		fmt.Fprintf(b, "| %s |", f)
		for _, release := range releases {
			fmt.Fprintf(b, " %s |", cmp.Or(values[release+"\x00"+f], "–"))
		}
		b.WriteString("\n")
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
