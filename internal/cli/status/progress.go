package status

import (
	"fmt"
	"io"

	"github.com/mesh-agent/mesh-agent/internal/printer"
)

// progress is a line that changes. On a terminal it is written over; elsewhere
// each new text is a line of its own, and a repeated one is none.
type progress struct {
	out      io.Writer
	terminal bool
	width    int
	last     string
}

func newProgress(out io.Writer) *progress {
	width, ok := printer.Terminal(out)
	return &progress{out: out, terminal: ok, width: width}
}

// show changes the line.
func (p *progress) show(text string) {
	text = printer.Clean(text)
	if p.terminal {
		if runes := []rune(text); p.width > 1 && len(runes) >= p.width {
			text = string(runes[:p.width-2]) + "…"
		}
		fmt.Fprintf(p.out, "\r%s\x1b[K", text)
	} else if text != p.last {
		fmt.Fprintln(p.out, text)
	}
	p.last = text
}

// end removes the line from a terminal.
func (p *progress) end() {
	if p.terminal && p.last != "" {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
