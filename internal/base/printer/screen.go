package printer

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// Screen shows one text after another at the same place of a terminal, as far as it fits there. Elsewhere it shows
// them one below the other, except those equal to the previous one. A text consists of the writes since the last
// Show. It is styled for the writer on which it is shown. A Screen belongs to one goroutine.
type Screen struct {
	// Redraw is whether a text takes the place of the one before.
	Redraw bool

	out       io.Writer
	separator string // between two texts that are below each other
	next      bytes.Buffer
	last      string // of the texts
	shown     bool   // whether there was one
	lines     int    // of the last one, on a terminal
}

// NewScreen returns a screen that shows nothing yet. Only a terminal that can move its cursor redraws.
func NewScreen(out io.Writer, getenv func(string) string, separator string) *Screen {
	_, ok := Terminal(out)
	return &Screen{out: out, Redraw: ok && getenv("TERM") != "dumb", separator: separator}
}

// Write adds to the next text.
func (s *Screen) Write(text []byte) (int, error) { return s.next.Write(text) }

// ShownOn is what the texts are shown on.
func (s *Screen) ShownOn() io.Writer { return s.out }

// Next is the text written since the last Show.
func (s *Screen) Next() string { return s.next.String() }

// Discard drops the text written since the last Show.
func (s *Screen) Discard() { s.next.Reset() }

// Show shows the text written since the last Show. Without one, the shown text stays.
func (s *Screen) Show() error {
	if s.next.Len() == 0 {
		return nil
	}
	text := s.next.String()
	s.next.Reset()
	before := s.last
	s.last = text
	if s.Redraw {
		return s.redraw(text)
	}
	if s.shown && text == before {
		return nil
	}
	if s.shown {
		text = s.separator + text
	}
	s.shown = true
	_, err := io.WriteString(s.out, text)
	return err
}

// Escapes of a terminal.
const (
	cursorUp   = "\x1b[%dA"
	clearRest  = "\x1b[J" // of the screen
	clearLine  = "\x1b[K" // from the cursor on
	noWrapping = "\x1b[?7l"
	wrapping   = "\x1b[?7h"
)

// redraw writes over the lines of the text before. Without wrapping, each line takes one.
func (s *Screen) redraw(text string) error {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if _, height, _ := size(s.out); height > 1 && len(lines) > height-1 {
		rest := len(lines) - (height - 2)
		lines = append(lines[:height-2:height-2], fmt.Sprintf("… %s below", Count(rest, "line")))
	}
	var b strings.Builder
	if s.lines > 0 {
		fmt.Fprintf(&b, cursorUp, s.lines)
	}
	b.WriteString("\r" + noWrapping)
	for _, line := range lines {
		b.WriteString(line + clearLine + "\n")
	}
	b.WriteString(clearRest + wrapping)
	s.lines = len(lines)
	_, err := io.WriteString(s.out, b.String())
	return err
}
