package printer

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// Clean replaces unprintable characters and invalid UTF-8 by escapes such as \n and \x1b.
func Clean(text string) string {
	if strings.IndexFunc(text, notPrintable) < 0 && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case notPrintable(r):
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteRune(r)
		}
		text = text[size:]
	}
	return b.String()
}

func notPrintable(r rune) bool { return !unicode.IsPrint(r) }

// Color is a colour of the terminal; the zero value is none.
type Color uint8

// The colours.
const (
	NoColor Color = iota
	Green
	Yellow
	Red
	Bold
)

// Paint wraps the text in the colour's escapes.
func (c Color) Paint(text string) string {
	codes := [...]string{Green: "32", Yellow: "33", Red: "31", Bold: "1"}
	if c == NoColor || int(c) >= len(codes) {
		return text
	}
	return "\x1b[" + codes[c] + "m" + text + "\x1b[0m"
}

// Terminal returns the width of the terminal that w is, or that it is shown on, and whether it is one.
func Terminal(w io.Writer) (width int, ok bool) {
	width, _, ok = size(w)
	return width, ok
}

// size is the size of the terminal that w is, or on which w is shown; 0 for an unknown width or height.
func size(w io.Writer) (width, height int, ok bool) {
	for {
		over, isOver := w.(interface{ ShownOn() io.Writer })
		if !isOver {
			break
		}
		w = over.ShownOn()
	}
	f, isFile := w.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return 0, 0, false
	}
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0, 0, true
	}
	return width, height, true
}

// StyleFor returns the style that suits w: without colours and without cutting
// off a terminal, without colours when NO_COLOR is set to anything.
func StyleFor(w io.Writer, getenv func(string) string) Style {
	width, ok := Terminal(w)
	if !ok {
		return Style{}
	}
	return Style{Color: getenv("NO_COLOR") == "" && getenv("TERM") != "dumb", Width: width}
}

// Duration writes a span of time in at most two units: 0.4s, 12s, 3m10s, 2h5m, 4d3h.
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + Duration(-d)
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + "s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return two(int(d.Minutes()), "m", int(d.Seconds())%60, "s")
	case d < 24*time.Hour:
		return two(int(d.Hours()), "h", int(d.Minutes())%60, "m")
	}
	return two(int(d.Hours())/24, "d", int(d.Hours())%24, "h")
}

func two(a int, unit string, b int, smaller string) string {
	if b == 0 {
		return fmt.Sprintf("%d%s", a, unit)
	}
	return fmt.Sprintf("%d%s%d%s", a, unit, b, smaller)
}

// Wrap breaks a text into lines of at most this width, where it has spaces.
// A command of this program in quotes is one word, so that it can be copied, where a line has room for it.
func Wrap(text string, width int) []string {
	var lines []string
	line, used := "", 0
	for word := range wordsOf(text, width) {
		n := utf8.RuneCountInString(word)
		switch {
		case used == 0:
			line, used = word, n
		case used+1+n > width:
			lines = append(lines, line)
			line, used = word, n
		default:
			line, used = line+" "+word, used+1+n
		}
	}
	if used > 0 {
		lines = append(lines, line)
	}
	return lines
}

// Present drops the fields that have nothing to say.
func Present(fields ...Field) []Field {
	return slices.DeleteFunc(fields, func(f Field) bool { return strings.Join(f.Texts, "") == "" })
}

// OrText returns the texts, or only this text when there are none.
func OrText(texts []string, text string) []string {
	if len(texts) == 0 {
		return []string{text}
	}
	return texts
}

// Texts are the items in words.
func Texts[T any](items []T, text func(T) string) []string {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = text(item)
	}
	return texts
}

// Join puts the items in words on one line.
func Join[T any](items []T, separator string, text func(T) string) string {
	return strings.Join(Texts(items, text), separator)
}

// SortedLabels lists labels as KEY=VALUE, by key.
func SortedLabels(labels map[string]string) []string {
	return Texts(slices.Sorted(maps.Keys(labels)), func(key string) string { return key + "=" + labels[key] })
}

// Labels lists labels on one line, LabelLines each on its own.
func Labels(m map[string]string) string { return strings.Join(LabelLines(m), ",") }

// LabelLines lists labels, by key; those without a value have no equals sign.
func LabelLines(m map[string]string) []string {
	return Texts(slices.Sorted(maps.Keys(m)), func(key string) string {
		if m[key] == "" {
			return key
		}
		return key + "=" + m[key]
	})
}

// Ago is how long ago a moment was; empty for none.
func Ago(t *time.Time) string {
	if t == nil {
		return ""
	}
	return Duration(time.Since(*t)) + " ago"
}

// YesNo is a truth in a word.
func YesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// Number is the number, nothing for 0, which means none.
func Number(id uint32) string {
	if id == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(id), 10)
}

// CleanLines cleans each line of a text that others may have written a part of.
func CleanLines(text string) string {
	return Join(strings.Split(text, "\n"), "\n", func(line string) string { return Clean(strings.ReplaceAll(line, "\t", "    ")) })
}

// OneLine puts a text of several lines on one.
func OneLine(err error) string {
	return Join(strings.Split(strings.TrimSpace(err.Error()), "\n"), "; ", strings.TrimSpace)
}

// Some joins the first texts and counts the rest.
func Some(texts []string, most int) string {
	if len(texts) <= most {
		return strings.Join(texts, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(texts[:most], ", "), len(texts)-most)
}

// List is "a, b and c", and of more than the most Some of them.
func List(texts []string, most int) string {
	n := len(texts)
	if n > most {
		return Some(texts, most)
	}
	if n < 2 {
		return strings.Join(texts, "")
	}
	return strings.Join(texts[:n-1], ", ") + " and " + texts[n-1]
}

// Moment writes a time with its distance from now; nothing for none.
func Moment(t *time.Time, now time.Time) string {
	if t == nil {
		return ""
	}
	return fmt.Sprintf("%s (%s ago)", t.UTC().Format(time.RFC3339), Duration(now.Sub(*t)))
}

// Seconds writes a number of seconds as a span of time.
func Seconds(n float64) string { return Duration(time.Duration(n * float64(time.Second))) }

// Count writes a number with its noun.
func Count(n int, noun string) string { return Counted(n, noun, noun+"s") }

// Counted writes a number with its noun in the singular or the plural.
func Counted(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// WellColor is the color of a good state, or of a bad one.
func WellColor(well bool) Color {
	if well {
		return Green
	}
	return Red
}

// Signed writes a number with its sign.
func Signed(n int) string { return fmt.Sprintf("%+d", n) }
