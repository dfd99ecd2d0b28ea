package printer

import (
	"bufio"
	"io"
	"iter"
	"strings"
	"unicode/utf8"
)

// sampleRows is how many rows decide the widths of the columns.
const sampleRows = 500

// gap stands between columns.
const gap = "  "

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
	Width int  // the last column is cut to stay within it; 0: it never is
	// Indent stands before each line.
	Indent string
}

// cell is the text of one place, ready to be written.
type cell struct {
	text  string
	width int
	color Color
}

// Print writes the items as rows below a header and returns their number.
// Without items it writes nothing. It ends with the first error of the items or
// of the writer.
func (t Table[T]) Print(w io.Writer, items iter.Seq2[T, error], style Style) (n int, err error) {
	out := bufio.NewWriterSize(w, 32<<10)
	p := layout[T]{columns: t.visible(style), style: style}
	for item, err := range items {
		if err != nil {
			return n, flush(out, p.begin(out), err)
		}
		n++
		if err := p.row(out, item); err != nil {
			return n, err
		}
	}
	return n, flush(out, p.begin(out), nil)
}

// flush writes what is left and returns the first error.
func flush(out *bufio.Writer, errs ...error) error {
	for _, err := range errs {
		if err != nil {
			_ = out.Flush() // what came before the error is worth seeing
			return err
		}
	}
	return out.Flush()
}

func (t Table[T]) visible(style Style) []Column[T] {
	var columns []Column[T]
	for _, c := range t {
		if !c.Wide || style.Wide {
			columns = append(columns, c)
		}
	}
	return columns
}

// layout is a table that is being written.
type layout[T any] struct {
	columns []Column[T]
	style   Style
	begun   bool
	waiting [][]cell // the first rows, until there are enough of them
	widths  []int
}

func (p *layout[T]) row(out *bufio.Writer, item T) error {
	cells := make([]cell, len(p.columns))
	for i, c := range p.columns {
		cells[i] = newCell(c.Text(item))
		if c.Color != nil {
			cells[i].color = c.Color(item)
		}
	}
	if p.begun {
		return p.write(out, cells)
	}
	p.waiting = append(p.waiting, cells)
	if len(p.waiting) < sampleRows {
		return nil
	}
	return p.begin(out)
}

// begin measures the rows that wait and writes them below the header.
func (p *layout[T]) begin(out *bufio.Writer) error {
	if p.begun || len(p.waiting) == 0 {
		return nil
	}
	p.begun = true
	header := make([]cell, len(p.columns))
	for i, c := range p.columns {
		header[i] = newCell(c.Title)
	}
	rows := append([][]cell{header}, p.waiting...)
	p.waiting = nil
	p.widths = make([]int, len(p.columns))
	for _, row := range rows {
		for i, c := range row {
			p.widths[i] = max(p.widths[i], c.width)
		}
	}
	for _, row := range rows {
		if err := p.write(out, row); err != nil {
			return err
		}
	}
	return nil
}

func (p *layout[T]) write(out *bufio.Writer, row []cell) error {
	_, _ = out.WriteString(p.style.Indent) // the writer keeps its error for the end
	used := len(p.style.Indent)
	for i, c := range row {
		if i > 0 {
			_, _ = out.WriteString(gap)
			used += len(gap)
		}
		last := i == len(row)-1
		if last && p.style.Width > 0 {
			c = c.cut(p.style.Width - used)
		}
		padding := strings.Repeat(" ", max(0, p.widths[i]-c.width))
		text := c.text
		if p.style.Color {
			text = c.color.Paint(text)
		}
		switch {
		case p.columns[i].Right:
			text = padding + text
		case !last:
			text += padding
		}
		_, _ = out.WriteString(text)
		used += max(c.width, p.widths[i])
	}
	return out.WriteByte('\n')
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
	width = max(width, 10)
	if c.width <= width {
		return c
	}
	runes := []rune(c.text)
	c.text, c.width = string(runes[:width-1])+"…", width
	return c
}
