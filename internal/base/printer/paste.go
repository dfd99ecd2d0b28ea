package printer

import (
	"iter"
	"strings"
	"unicode/utf8"
)

// program begins a command line of this program in a text, between single quotes.
const program = "'mesh-agent "

// pasteable completes the commands in a text. If a completed command has quotes of its own, it removes the quotes
// around it: in a shell they would end the inner ones.
func pasteable(text string, paste func(line string) string) string {
	if paste == nil {
		return text
	}
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, program)
		line, after, closed := strings.Cut(rest, "'")
		if !found || !closed {
			return b.String() + text
		}
		line = paste(strings.TrimPrefix(program, "'") + line)
		if !strings.Contains(line, "'") {
			line = "'" + line + "'"
		}
		b.WriteString(before + line)
		text = after
	}
}

// wordsOf are the words of a text. A command in quotes is one, unless it is longer than a line.
func wordsOf(text string, width int) iter.Seq[string] {
	return func(yield func(string) bool) {
		words := strings.Fields(text)
		for i := 0; i < len(words); i++ {
			word := words[i]
			if n := quoted(words[i:]); n > 1 {
				if whole := strings.Join(words[i:i+n], " "); utf8.RuneCountInString(whole) <= width {
					word, i = whole, i+n-1
				}
			}
			if !yield(word) {
				return
			}
		}
	}
}

// quoted is how many words belong to the command in quotes that the first of them begins; 0 for none.
func quoted(words []string) int {
	if !strings.HasSuffix(words[0], strings.TrimSpace(program)) {
		return 0
	}
	for i, word := range words[1:] {
		if strings.Contains(word, "'") {
			return i + 2
		}
	}
	return 0
}
