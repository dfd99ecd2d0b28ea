package printer

import (
	"bufio"
	"io"
)

// Live is a table whose rows come one after another, for as long as somebody
// looks. The rows before the first Flush decide the widths of the columns.
type Live[T any] struct {
	out *bufio.Writer
	p   layout[T]
}

// Live returns a table of these columns without rows.
func (t Table[T]) Live(w io.Writer, style Style) *Live[T] {
	return &Live[T]{out: bufio.NewWriterSize(w, 32<<10), p: layout[T]{columns: t.visible(style), style: style}}
}

// Row adds one row, which Flush writes.
func (l *Live[T]) Row(item T) error { return l.p.row(l.out, item) }

// Flush writes what was added; the header before the first row.
func (l *Live[T]) Flush() error { return flush(l.out, l.p.begin(l.out)) }
