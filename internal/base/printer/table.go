// Package printer writes lists and objects for a person or a program: as a
// table, as JSON, as YAML or as names.
//
// Lists are written as they come. A table takes the widths of its columns from
// the first [sampleRows] rows, so a list of a million items needs no more
// memory than a short one; a later cell that is too wide moves its row only.
//
// Texts may come from another cluster. In tables, control characters are
// written as escapes: no remote can move the cursor of a terminal.
//
// Concurrency: every call belongs to its caller. Nothing is kept between calls.
package printer

import (
	"bufio"
	"cmp"
	"io"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"
)

// sampleRows is how many rows decide the widths of the columns.
const sampleRows = 500

const gap = "  " // between columns

// leastCell is the room that a cell has that is cut.
const leastCell = 10

// Column is one column of a table of T.
type Column[T any] struct {
	Title string
	Text  func(T) string
	Wide  bool          // shown only in wide tables
	Right bool          // aligned to the right, as numbers are
	Kept  bool          // of the last column: rows that are cut lose others before it
	Color func(T) Color // nil: none
}

// Table describes a table of T.
type Table[T any] []Column[T]

// Style says how a table is written.
type Style struct {
	Wide  bool // with the wide columns
	Color bool // with colours
	// NoHeader leaves out the titles of the columns.
	NoHeader bool
	Width    int // the last column is cut to fit; 0: it never is
	// Cut, when set, lets the other columns be cut too, and becomes true when something is.
	Cut *bool
	// Indent comes before each line.
	Indent string
	// Paste completes a command of this program in advice; nil leaves it as it is.
	Paste func(line string) string
}

// cell is the text of one place, ready to be written.
type cell struct {
	text  string
	width int
	color Color
}

// Print writes the items as rows below a header and returns their number. Without items it writes
// nothing. It ends with the first error of the items or of the writer; what came before is written.
func (t Table[T]) Print(w io.Writer, items iter.Seq2[T, error], style Style) (n int, err error) {
	l := t.Live(w, style)
	defer func() { err = cmp.Or(err, l.Flush()) }()
	for item, err := range items {
		if err != nil {
			return n, err
		}
		n++
		if err := l.Row(item); err != nil {
			return n, err
		}
	}
	return n, nil
}

// Live is a table whose rows come one after another, for as long as a user watches it. The rows before the first
// Flush decide the widths of the columns.
type Live[T any] struct {
	columns []Column[T]
	*grid
}

// grid has the cells of a table, without its type.
type grid struct {
	out     *bufio.Writer // keeps its first error
	style   Style
	right   []bool   // by column
	kept    int      // the width of the last column's title, when the column is kept
	titles  int      // the number of lines with titles
	waiting [][]cell // the header and the first rows, until there are enough of them
	widths  []int    // nil: nothing is written yet
}

// Live returns a table of these columns without rows.
func (t Table[T]) Live(w io.Writer, style Style) *Live[T] {
	columns := slices.DeleteFunc(slices.Clone(t), func(c Column[T]) bool { return c.Wide && !style.Wide })
	g := &grid{out: bufio.NewWriterSize(w, 32<<10), style: style}
	var header []cell
	for _, c := range columns {
		header, g.right = append(header, newCell(c.Title)), append(g.right, c.Right)
		if c.Kept {
			g.kept = header[len(header)-1].width
		}
	}
	if !style.NoHeader {
		g.titles, g.waiting = 1, [][]cell{header}
	}
	return &Live[T]{columns, g}
}

// Flush writes the rows that were added, and the header before the first one.
func (g *grid) Flush() error {
	g.begin()
	return g.out.Flush()
}

// Row adds one row, which Flush writes.
func (l *Live[T]) Row(item T) error {
	cells := make([]cell, len(l.columns))
	for i, c := range l.columns {
		cells[i] = newCell(c.Text(item))
		if c.Color != nil {
			cells[i].color = c.Color(item)
		}
	}
	return l.add(cells)
}

func (g *grid) add(cells []cell) error {
	if g.widths != nil {
		return g.write(cells)
	}
	if g.waiting = append(g.waiting, cells); len(g.waiting) > sampleRows {
		g.begin()
	}
	return nil
}

func (g *grid) begin() {
	if len(g.waiting) <= g.titles {
		return
	}
	g.widths = make([]int, len(g.right))
	for _, row := range g.waiting {
		for i, c := range row {
			g.widths[i] = max(g.widths[i], c.width)
		}
	}
	for _, row := range g.waiting {
		_ = g.write(row) // the writer keeps its error
	}
	g.waiting = nil
}

func (g *grid) write(row []cell) error {
	_, _ = g.out.WriteString(g.style.Indent)
	at, width := len(row)-1, g.style.Width
	if last := row[at]; g.style.Cut == nil || width == 0 || g.kept == 0 {
		g.cells(row, width)
	} else {
		used := g.cells(row[:at], width-len(gap)-min(max(last.width, g.kept), width/2))
		shorter := last.cut(width - used - len(gap))
		*g.style.Cut = *g.style.Cut || shorter != last
		_, _ = g.out.WriteString(gap + shorter.text)
	}
	return g.out.WriteByte('\n')
}

// cells writes the cells of a row within a width, and returns how much of it they use.
func (g *grid) cells(row []cell, width int) (used int) {
	used = len(g.style.Indent)
	for i := 0; i < len(row); i++ {
		c := row[i]
		if g.style.Cut != nil && width > 0 && i > 0 && used+len(gap)+min(leastCell, g.widths[i]) > width {
			*g.style.Cut = true
			break
		}
		if i > 0 {
			_, _ = g.out.WriteString(gap)
			used += len(gap)
		}
		last, column := i == len(row)-1, g.widths[i]
		if width > 0 {
			column = min(column, max(c.width, width-used))
		}
		if all := g.style.Cut != nil; width > 0 && (last || all && used+max(c.width, g.widths[i]) > width) {
			shorter := c.cut(width - used)
			if all && (shorter != c || !last) {
				*g.style.Cut = true
				row, last = row[:i+1], true
			}
			if shorter != c {
				c, column = shorter, shorter.width
			}
		}
		padding := strings.Repeat(" ", max(0, column-c.width))
		text := c.text
		if g.style.Color {
			text = c.color.Paint(text)
		}
		switch {
		case g.right[i]:
			text = padding + text
		case i < len(g.right)-1:
			text += padding
		}
		_, _ = g.out.WriteString(text)
		used += max(c.width, column)
	}
	return used
}

// none is what a cell without a text shows.
const none = "-"

func newCell(text string) cell {
	text = Clean(text)
	if text == "" {
		text = none
	}
	return cell{text: text, width: utf8.RuneCountInString(text)}
}

// cut shortens a cell to a width, with a sign that something is missing. It
// leaves some room however narrow the terminal is.
func (c cell) cut(width int) cell {
	width = max(width, leastCell)
	if c.width <= width {
		return c
	}
	runes := []rune(c.text)
	c.text, c.width = string(runes[:width-1])+"…", width
	return c
}
