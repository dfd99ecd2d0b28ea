package printer

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

const pageWidth = 100 // of running text, unless the terminal is narrower

const minWidth = 20 // of running text, however narrow the terminal is

// Page is a text for a person, made of lines, fields, sections and tables. Flush returns the first error of its
// writes.
type Page struct {
	out    *bufio.Writer
	style  Style
	indent string // before everything but the titles of sections
}

// NewPage returns an empty page.
func NewPage(w io.Writer, style Style) *Page {
	return &Page{out: bufio.NewWriterSize(w, 32<<10), style: style}
}

// Flush writes the buffered text and returns the first error of the writer.
func (p *Page) Flush() error { return p.out.Flush() }

// Painted is a text with a colour.
type Painted struct {
	Text  string
	Color Color
}

// Line writes one line. Arguments that are texts are cleaned, also those that are [Painted].
func (p *Page) Line(format string, args ...any) {
	p.write(p.indent + fmt.Sprintf(format, p.clean(args)...))
}

func (p *Page) clean(args []any) []any {
	clean := slices.Clone(args)
	for i, a := range args {
		switch v := a.(type) {
		case string:
			clean[i] = Clean(v)
		case Painted:
			clean[i] = p.paint(v.Color, Clean(v.Text))
		}
	}
	return clean
}

func (p *Page) paint(color Color, text string) string {
	if !p.style.Color {
		return text
	}
	return color.Paint(text)
}

func (p *Page) write(line string) {
	_, _ = p.out.WriteString(strings.TrimRight(line, " ") + "\n") // the writer keeps its error for the end
}

// Blank leaves a line free, and ends a section: the next lines are no longer indented.
func (p *Page) Blank() {
	p.indent = ""
	p.write("")
}

// Section begins a section: a blank line and a title. The next lines are indented, until [Page.Blank].
func (p *Page) Section(format string, args ...any) {
	p.Blank()
	p.write(p.paint(Bold, fmt.Sprintf(format, p.clean(args)...)))
	p.indent = "  "
}

// Text writes running text, broken where the page ends.
func (p *Page) Text(format string, args ...any) { p.running("", fmt.Sprintf(format, p.clean(args)...)) }

// Advice writes what to do, behind an arrow.
func (p *Page) Advice(format string, args ...any) { p.running("→ ", p.advice(format, args)) }

// AdviceItem writes what to do as an item, with an arrow behind its mark.
func (p *Page) AdviceItem(mark, format string, args ...any) {
	p.Item(mark+"→ ", "%s", p.advice(format, args))
}

func (p *Page) advice(format string, args []any) string {
	return pasteable(fmt.Sprintf(format, p.clean(args)...), p.style.Paste)
}

// Item writes a text behind a mark, such as a name that is padded already. On a terminal it is
// broken where the page ends; elsewhere it stays one line, for programs that read lines.
func (p *Page) Item(mark, format string, args ...any) {
	mark = Clean(mark)
	if p.style.Width == 0 {
		p.write(p.indent + mark + fmt.Sprintf(format, p.clean(args)...))
		return
	}
	p.running(mark, fmt.Sprintf(format, p.clean(args)...))
}

func (p *Page) running(mark, text string) {
	hang := strings.Repeat(" ", utf8.RuneCountInString(mark))
	width := pageWidth - len(p.indent) - len(hang)
	if p.style.Width > 0 {
		width = min(width, p.style.Width-len(p.indent)-len(hang))
	}
	for _, line := range Wrap(text, max(width, minWidth)) {
		p.write(p.indent + mark + line)
		mark = hang
	}
}

// Field is a name with its value: one text, or several, each on a line.
type Field struct {
	Name  string
	Texts []string
	Color Color
}

// F returns a field. Without a text that says anything its value is "-".
func F(name string, texts ...string) Field { return Field{Name: name, Texts: texts} }

// Fields writes fields below each other, their values aligned.
func (p *Page) Fields(fields ...Field) {
	width := 0
	for _, f := range fields {
		width = max(width, utf8.RuneCountInString(f.Name))
	}
	for _, f := range fields {
		name := f.Name
		texts := slices.DeleteFunc(slices.Clone(f.Texts), func(s string) bool { return s == "" })
		if len(texts) == 0 {
			texts = []string{"-"}
		}
		for _, text := range texts {
			p.write(fmt.Sprintf("%s%-*s%s%s", p.indent, width, name, gap, p.paint(f.Color, Clean(text))))
			name = ""
		}
	}
}

// Rows writes a table of these items on a page; nothing without any.
func Rows[T any](p *Page, t Table[T], items []T) {
	style := p.style
	style.Indent = p.indent
	l := t.Live(p.out, style)
	for _, item := range items {
		_ = l.Row(item) // the writer keeps its error
	}
	_ = l.Flush()
}
