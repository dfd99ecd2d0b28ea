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
	Width    int // the last column is cut to stay within it; 0: it never is
	// Cut, when set, lets the other columns be cut too, and becomes true when something is.
	Cut *bool
	// Indent comes before each line.
	Indent string
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

// Live is a table whose rows come one after another, for as long as somebody
// looks. The rows before the first Flush decide the widths of the columns.
type Live[T any] struct {
	out     *bufio.Writer // keeps its first error
	columns []Column[T]
	style   Style
	titles  int      // the number of lines with titles
	waiting [][]cell // the header and the first rows, until there are enough of them
	widths  []int    // nil: nothing is written yet
}

// Live returns a table of these columns without rows.
func (t Table[T]) Live(w io.Writer, style Style) *Live[T] {
	columns := slices.DeleteFunc(slices.Clone(t), func(c Column[T]) bool { return c.Wide && !style.Wide })
	header := make([]cell, len(columns))
	for i, c := range columns {
		header[i] = newCell(c.Title)
	}
	l := &Live[T]{out: bufio.NewWriterSize(w, 32<<10), columns: columns, style: style, titles: 1, waiting: [][]cell{header}}
	if style.NoHeader {
		l.titles, l.waiting = 0, nil
	}
	return l
}

// Flush writes what was added; the header before the first row.
func (l *Live[T]) Flush() error {
	l.begin()
	return l.out.Flush()
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
	if l.widths != nil {
		return l.write(cells)
	}
	if l.waiting = append(l.waiting, cells); len(l.waiting) > sampleRows {
		l.begin()
	}
	return nil
}

func (l *Live[T]) begin() {
	if len(l.waiting) <= l.titles {
		return
	}
	l.widths = make([]int, len(l.columns))
	for _, row := range l.waiting {
		for i, c := range row {
			l.widths[i] = max(l.widths[i], c.width)
		}
	}
	for _, row := range l.waiting {
		_ = l.write(row) // the writer keeps its error
	}
	l.waiting = nil
}

func (l *Live[T]) write(row []cell) error {
	_, _ = l.out.WriteString(l.style.Indent)
	used := len(l.style.Indent)
	for i := 0; i < len(row); i++ {
		c := row[i]
		if l.style.Cut != nil && l.style.Width > 0 && i > 0 && used+len(gap)+min(leastCell, l.widths[i]) > l.style.Width {
			*l.style.Cut = true
			break
		}
		if i > 0 {
			_, _ = l.out.WriteString(gap)
			used += len(gap)
		}
		last := i == len(row)-1
		if all := l.style.Cut != nil; l.style.Width > 0 && (last || all && used+max(c.width, l.widths[i]) > l.style.Width) {
			shorter := c.cut(l.style.Width - used)
			if all && (shorter != c || !last) {
				*l.style.Cut = true
				row, last = row[:i+1], true
			}
			c = shorter
		}
		padding := strings.Repeat(" ", max(0, l.widths[i]-c.width))
		text := c.text
		if l.style.Color {
			text = c.color.Paint(text)
		}
		switch {
		case l.columns[i].Right:
			text = padding + text
		case !last:
			text += padding
		}
		_, _ = l.out.WriteString(text)
		used += max(c.width, l.widths[i])
	}
	return l.out.WriteByte('\n')
}

func newCell(text string) cell {
	text = Clean(text)
	if text == "" {
		text = "-"
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
