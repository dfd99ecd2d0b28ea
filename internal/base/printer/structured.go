package printer

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/internal/base/safetext"
)

// Object writes one value as JSON or YAML.
func (f *Format) Object(w io.Writer, v any) error {
	text, err := f.encode(v)
	if err == nil {
		_, err = w.Write(text)
	}
	return err
}

func (f *Format) encode(v any) ([]byte, error) {
	if f.path != nil {
		return f.path.text(v)
	}
	if f.name == YAML {
		return safetext.YAML(v)
	}
	text, err := safetext.JSON(v, "  ")
	return append(text, '\n'), err
}

// Listing is a list that is being read. Next is called after the last item.
type Listing[T any] struct {
	Revision uint64
	Items    iter.Seq2[T, error]
	Next     func() string
}

// Structured writes a list as JSON or YAML, as the one object that the API
// answers with, and returns the number of its items. A path needs all of it at once.
func Structured[T any](w io.Writer, f *Format, l Listing[T]) (n int, err error) {
	if f.path != nil {
		n, object, err := whole(l)
		if err != nil {
			return n, err
		}
		return n, f.Object(w, object)
	}
	s := listStyleOf(f.name)
	out := bufio.NewWriterSize(w, 32<<10)
	defer func() { err = cmp.Or(err, out.Flush()) }() // also the output before an error
	fmt.Fprintf(out, s.open, l.Revision)
	end := s.empty
	for item, err := range l.Items {
		if err != nil {
			return n, err
		}
		text, err := f.encode(item)
		if err != nil {
			return n, err
		}
		if n > 0 {
			_, _ = out.WriteString(s.separator)
		}
		_, _ = out.WriteString(s.begin)
		text = bytes.TrimSuffix(text, []byte("\n"))
		if _, err := out.Write(bytes.ReplaceAll(text, []byte("\n"), []byte("\n"+s.indent))); err != nil {
			return n, err
		}
		n, end = n+1, s.close
	}
	next, err := safetext.JSON(l.Next(), "")
	fmt.Fprintf(out, end, next)
	return n, err
}

// listStyle is how a list object is put around its items. Each item is indented,
// but not its first line, and comes without its last newline.
type listStyle struct {
	open             string // with the revision
	begin, separator string // of an item, and after it
	indent           string
	close, empty     string // with the cursor
}

func listStyleOf(format string) listStyle {
	if format == YAML {
		return listStyle{
			open:  "revision: %d\nitems:",
			begin: "\n- ", indent: "  ",
			close: "\nnext: %s\n", empty: " []\nnext: %s\n",
		}
	}
	return listStyle{
		open:  "{\n  \"revision\": %d,\n  \"items\": [",
		begin: "\n    ", separator: ",", indent: "    ",
		close: "\n  ],\n  \"next\": %s\n}\n", empty: "],\n  \"next\": %s\n}\n",
	}
}

// Lines writes one line for each item, such as its name, and returns their number.
func Lines[T any](w io.Writer, items iter.Seq2[T, error], line func(T) string) (n int, err error) {
	out := bufio.NewWriterSize(w, 32<<10)
	defer func() { err = cmp.Or(err, out.Flush()) }()
	for item, err := range items {
		if err != nil {
			return n, err
		}
		if _, err := out.WriteString(Clean(line(item)) + "\n"); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// Format is a form of output. It is the value of a flag, which
// refuses every format that is not allowed.
type Format struct {
	name    string
	allowed []string
	path    *Path          // of the format JSONPath
	columns []customColumn // of the format CustomColumns
}

// The names of formats.
const (
	Text  = "text"
	Plain = "table"
	Wide  = "wide"
	JSON  = "json"
	YAML  = "yaml"
	Name  = "name"
	// JSONPath is given with its path: jsonpath={.items[*].name}.
	JSONPath = "jsonpath"
)

// NewFormat returns a format that may be any of those allowed and is the first.
func NewFormat(allowed ...string) *Format { return &Format{name: allowed[0], allowed: allowed} }

// String returns the format's name.
func (f *Format) String() string { return f.name }

// Type is what help calls the value.
func (f *Format) Type() string { return strings.Join(f.allowed, "|") }

// Set chooses the format of that name.
func (f *Format) Set(name string) (err error) {
	f.path, f.columns = nil, nil
	if columns, is := strings.CutPrefix(name, CustomColumns+"="); is || name == CustomColumns {
		name = CustomColumns
		if f.columns, err = parseColumns(columns); err != nil {
			return err
		}
	}
	if path, is := strings.CutPrefix(name, JSONPath+"="); is {
		name = JSONPath
		if f.path, err = ParsePath(path); err != nil {
			return err
		}
	} else if name == JSONPath {
		return errors.New("give its path: jsonpath={.items[*].name}")
	}
	if !slices.Contains(f.allowed, name) {
		return fmt.Errorf("must be one of %s", strings.Join(f.allowed, ", "))
	}
	f.name = name
	return nil
}

// Structured reports whether the format is for programs: JSON, YAML, or a part of them.
func (f *Format) Structured() bool { return f.name == JSON || f.name == YAML || f.name == JSONPath }
