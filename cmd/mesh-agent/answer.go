package main

import (
	"io"

	"github.com/mesh-agent/mesh-agent/internal/printer"
)

// answer writes what was asked for, as data or as a page for a person.
func answer(w io.Writer, style printer.Style, format *printer.Format, v any, page func(*printer.Page)) error {
	if format.Structured() {
		return format.Object(w, v)
	}
	p := printer.NewPage(w, style)
	page(p)
	return p.Flush()
}

// verdict ends a command whose answer was printed.
func verdict(faulty, unwell bool) error {
	switch {
	case faulty:
		return errFaulty
	case unwell:
		return errUnwell
	}
	return nil
}
