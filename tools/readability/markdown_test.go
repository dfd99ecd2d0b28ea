package readability

import (
	"regexp"
	"strings"
)

// block is a piece of text of a page: a paragraph, a list item, a cell of a table or a heading.
type block struct {
	text    string
	heading bool
}

var (
	listItem  = regexp.MustCompile(`^( *)([-*]|\d+\.) +`)
	separator = regexp.MustCompile(`^\|[-| :]+\|?$`)
	codeSpan  = regexp.MustCompile("``[^`]+``|`[^`\n]*`")
	image     = regexp.MustCompile(`!\[[^\]]*\]\([^)]*\)`)
	linked    = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	bareURL   = regexp.MustCompile(`https?://\S+`)
	tag       = regexp.MustCompile(`<[^>\n]+>`)
	emphasis  = regexp.MustCompile(`\*+`)
)

// code replaces a code span: one word, which all rules ignore.
const code = "CODE"

// plain is the text of a line without its markup.
func plain(line string) string {
	line = image.ReplaceAllString(line, "")
	line = codeSpan.ReplaceAllString(line, code)
	line = linked.ReplaceAllString(line, "$1")
	line = bareURL.ReplaceAllString(line, code)
	line = tag.ReplaceAllString(line, "")
	return emphasis.ReplaceAllString(line, "")
}

// reader gathers the lines of a page into blocks.
type reader struct {
	blocks    []block
	paragraph []string
	content   int // where the text of the list item begins that may include this line
	fenced    bool
	afterGap  bool // the line before was empty, or code
	inItem    bool // the paragraph is the first of a list item
	unlisted  []string
}

// layout notes lines of lists and tables that Python-Markdown, which builds the site, shows as text.
func (r *reader) layout(line string, indent int) {
	if indent%4 != 0 || !r.inItem && len(r.paragraph) > 0 {
		r.unlisted = append(r.unlisted, line)
	}
}

func (r *reader) end() {
	if len(r.paragraph) > 0 {
		r.blocks = append(r.blocks, block{text: plain(strings.Join(r.paragraph, " "))})
		r.paragraph = nil
	}
	r.inItem = false
}

func (r *reader) line(line string) {
	text := strings.TrimSpace(line)
	indent := len(line) - len(strings.TrimLeft(line, " "))
	switch item := listItem.FindStringSubmatch(line); {
	case strings.HasPrefix(text, "```"):
		r.end()
		r.fenced = !r.fenced
	case r.fenced:
	case text == "":
		r.end()
		r.afterGap = true
		return
	case r.afterGap && indent >= r.content+4 && item == nil, r.afterGap && r.content == 0 && indent >= 4:
		return // code, which may continue in the next line
	case strings.HasPrefix(text, "#"):
		r.end()
		r.blocks = append(r.blocks, block{plain(strings.TrimLeft(text, "# ")), true})
		r.content = 0
	case separator.MatchString(text):
	case strings.HasPrefix(text, "|"):
		r.layout(line, indent)
		r.end()
		for _, cell := range strings.Split(codeSpan.ReplaceAllString(strings.Trim(text, "|"), code), "|") {
			r.blocks = append(r.blocks, block{text: plain(strings.TrimSpace(cell))})
		}
	case item != nil:
		r.layout(line, indent)
		r.end()
		r.content, r.inItem = len(item[0]), true
		r.paragraph = append(r.paragraph, line[len(item[0]):])
	default:
		if indent == 0 && r.afterGap {
			r.content = 0
		}
		r.paragraph = append(r.paragraph, text)
	}
	r.afterGap = false
}

// blocks returns the texts of a page. Code has none.
func blocks(page string) []block { return readPage(page).blocks }

func readPage(page string) *reader {
	r := new(reader)
	r.afterGap = true
	for line := range strings.Lines(page) {
		r.line(strings.TrimRight(line, " \n"))
	}
	r.end()
	return r
}
