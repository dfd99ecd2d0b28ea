package printer

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Line is a line that changes. A terminal shows only the last text; elsewhere each new text is a line of its own, and
// a repeated text is not written. It belongs to one goroutine.
type Line struct {
	out      io.Writer
	terminal bool
	width    int
	last     string
}

// NewLine returns a line that shows nothing yet.
func NewLine(out io.Writer) *Line {
	width, ok := Terminal(out)
	return &Line{out: out, terminal: ok, width: width}
}

// Show replaces the text.
func (l *Line) Show(text string) {
	text = Clean(text)
	if l.terminal {
		if runes := []rune(text); l.width > 1 && len(runes) >= l.width {
			text = string(runes[:l.width-2]) + "…"
		}
		fmt.Fprintf(l.out, "\r%s\x1b[K", text)
	} else if text != l.last {
		fmt.Fprintln(l.out, text)
	}
	l.last = text
}

// End leaves nothing of it on a terminal.
func (l *Line) End() {
	if l.terminal && l.last != "" {
		fmt.Fprint(l.out, "\r\x1b[K")
	}
}

// Progress shows on a terminal the work of a command that takes longer than a second, until the command prints
// something; then it removes its text. Elsewhere it shows nothing. Any goroutine may call its methods, also those of
// nil.
type Progress struct {
	mu   sync.Mutex
	text string // guarded by mu

	end  func() // ends the goroutine and waits for it, once
	stop chan struct{}
}

// progressInterval is until the text is seen for the first time, and between two looks at it.
const progressInterval = time.Second

// StartProgress shows a text until End, which has to be called. It is nil where out is no terminal.
func StartProgress(out io.Writer, text string) *Progress {
	line := NewLine(out)
	if !line.terminal {
		return nil
	}
	return startProgress(line, text)
}

func startProgress(line *Line, text string) *Progress {
	p := &Progress{text: text, stop: make(chan struct{})}
	var done sync.WaitGroup
	done.Go(func() { p.run(line) })
	p.end = sync.OnceFunc(func() {
		close(p.stop)
		done.Wait()
	})
	return p
}

func (p *Progress) run(line *Line) {
	defer line.End()
	since, tick := time.Now(), time.NewTicker(progressInterval)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			return
		case now := <-tick.C:
			p.mu.Lock()
			text := p.text
			p.mu.Unlock()
			line.Show(fmt.Sprintf("%s … %ds", text, int(now.Sub(since).Seconds())))
		}
	}
}

// Say replaces the text.
func (p *Progress) Say(format string, args ...any) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = fmt.Sprintf(format, args...)
}

// End waits until the progress is no longer on the terminal.
func (p *Progress) End() {
	if p != nil {
		p.end()
	}
}

// Before returns a writer to out which ends the progress first.
func (p *Progress) Before(out io.Writer) io.Writer { return &after{p, out} }

// after writes to out once the progress has ended.
type after struct {
	progress *Progress
	out      io.Writer
}

// Write implements io.Writer.
func (a *after) Write(text []byte) (int, error) {
	a.progress.End()
	return a.out.Write(text)
}

// ShownOn is what the writer writes to.
func (a *after) ShownOn() io.Writer { return a.out }
