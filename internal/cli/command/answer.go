package command

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/printer"
)

// Answer writes what was asked for, as data or as a page for a person.
func Answer(w io.Writer, style printer.Style, format *printer.Format, v any, page func(*printer.Page)) error {
	if format.Structured() {
		return format.Object(w, v)
	}
	p := printer.NewPage(w, style)
	page(p)
	return p.Flush()
}

// Plain is the form of output of keys and values for people.
const Plain = "plain"

// Answer writes what a command answers to its output.
func (c *Env) Answer(cmd *cobra.Command, format *printer.Format, v any, page func(*printer.Page)) error {
	out := cmd.OutOrStdout()
	return Answer(out, printer.StyleFor(out, c.Getenv), format, v, page)
}

// Tell writes a message, if there is one.
func Tell(w io.Writer, message string) {
	if message != "" {
		fmt.Fprintln(w, printer.Clean(message))
	}
}
