package printer

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

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
	if style != (Style{}) {
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
