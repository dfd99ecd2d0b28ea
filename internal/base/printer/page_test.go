package printer

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func writePage(p *Page) {
	p.Line("%s is %s", "a\x1b[2J", Painted{Text: "well\n", Color: Green})
	p.Fields(F("Name", "a"), F("Größe", "1", "", "2"), F("None"))
	p.Section("Items (%d)", 1)
	p.Item("a  ", "%s", strings.Repeat("word ", 30))
	Rows(p, fruitTable(), []fruit{{Name: "apple", Count: 3}})
	p.Advice("%s", strings.Repeat("do ", 40))
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

func TestDuration(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0:                              "0.0s",
		400 * time.Millisecond:         "0.4s",
		12 * time.Second:               "12s",
		time.Minute:                    "1m",
		3*time.Minute + 10*time.Second: "3m10s",
		2*time.Hour + 5*time.Minute + 59*time.Second: "2h5m",
		99*time.Hour + time.Minute:                   "4d3h",
		-time.Minute:                                 "-1m",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func TestStyleOffATerminal(t *testing.T) {
	t.Parallel()
	style := StyleFor(new(bytes.Buffer), func(string) string { return "" })
	if style.Color || style.Width != 0 {
		t.Errorf("%+v", style)
	}
}

func FuzzClean(f *testing.F) {
	f.Add("plain")
	f.Add("\x1b[2J\x9b\u202e\xff")
	f.Fuzz(func(t *testing.T, text string) {
		clean := Clean(text)
		if strings.IndexFunc(clean, notPrintable) >= 0 {
			t.Fatalf("%q", clean)
		}
		if Clean(clean) != clean {
			t.Fatalf("%q changes again", clean)
		}
	})
}

func TestWrap(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text  string
		width int
		want  []string
	}{
		"nothing":         {" ", 9, nil},
		"short":           {"one  two", 9, []string{"one two"}},
		"exactly":         {"one two", 7, []string{"one two"}},
		"too long":        {"größe two three", 9, []string{"größe two", "three"}},
		"a very long one": {"a incomprehensible b", 5, []string{"a", "incomprehensible", "b"}},
	} {
		if diff := cmp.Diff(test.want, Wrap(test.text, test.width)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
