package printer

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func writePage(p *Page) {
	p.Line("%s is %s", "a\x1b[2J", Painted{Text: "well\n", Color: Green})
	p.Fields(F("Name", "a"), F("Größe", "1", "", "2"), F("None"))
	p.Section("Items (%d)", 1)
	p.Item("a  ", "%s", strings.Repeat("word ", 30))
	Rows(p, fruitTable(), []fruit{{Name: "apple", Count: 3}})
	p.Advice("%s", strings.Repeat("do ", 40))
	p.End()
	p.Blank()
	p.Text("%s", strings.Repeat("text ", 30))
}

func TestPage(t *testing.T) {
	t.Parallel()
	const piped = `a\x1b[2J is well\n
Name   a
Größe  1
       2
None   -

Items (1)
  a  word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word
  NAME   COUNT  LAST
  apple      3  xxx
  → do do do do do do do do do do do do do do do do do do do do do do do do do do do do do do do do
    do do do do do do do do

text text text text text text text text text text text text text text text text text text text text
text text text text text text text text text text
`
	var out bytes.Buffer
	p := NewPage(&out, Style{})
	writePage(p)
	if err := p.Flush(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(piped, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestPageOnATerminal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := NewPage(&out, Style{Width: 40})
	writePage(p)
	if err := p.Flush(); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 40 {
			t.Errorf("%d wide: %s", n, line)
		}
	}
	out.Reset()
	p = NewPage(&out, Style{Color: true})
	writePage(p)
	if err := p.Flush(); err != nil || !strings.Contains(out.String(), Green.Paint(`well\n`)) || !strings.Contains(out.String(), Bold.Paint("Items (1)")) {
		t.Errorf("%q %v", out.String(), err)
	}
}

func TestPageTellsWhatCannotBeWritten(t *testing.T) {
	t.Parallel()
	p := NewPage(brokenPipe{}, Style{})
	writePage(p)
	if err := p.Flush(); !errors.Is(err, errPipe) {
		t.Error(err)
	}
}

var errPipe = errors.New("broken pipe")

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errPipe }
