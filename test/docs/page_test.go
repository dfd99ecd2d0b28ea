package docs

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// step is a command of a page with the output in the page.
type step struct {
	section    string
	command    string
	want       []string
	first, end int  // the lines of the output: from first to before end
	quiet      bool // the page shows its standard output without its log
}

const (
	indent   = "    "
	anything = "..."
)

// heredoc matches the word that ends a command's input on the following lines.
var heredoc = regexp.MustCompile(`<<'?([A-Z]+)'?`)

// continued reports whether a command continues in the next line.
func continued(command string) bool {
	if strings.HasSuffix(command, `\`) {
		return true
	}
	m := heredoc.FindStringSubmatch(command)
	return m != nil && !strings.HasSuffix(command, "\n"+m[1])
}

// steps returns the commands of a page.
func steps(lines []string) []step {
	var all []step
	section := ""
	inBlock, open := false, false // open: the last command continues on the next line
	for i, line := range lines {
		text, indented := strings.CutPrefix(line, indent)
		switch {
		case strings.HasPrefix(line, "#"):
			section = strings.TrimSpace(strings.TrimLeft(line, "#"))
			inBlock = false
		case !indented && strings.TrimSpace(line) != "":
			inBlock = false
		case indented && strings.HasPrefix(text, "$ "):
			all = append(all, step{section: section, command: text[2:], first: i + 1, end: i + 1})
			inBlock, open = true, continued(text[2:])
		case inBlock && open:
			s := &all[len(all)-1]
			s.command += "\n" + text
			s.first, s.end = i+1, i+1
			open = continued(s.command)
		case inBlock && indented:
			s := &all[len(all)-1]
			for len(s.want) < i-s.first { // empty lines before
				s.want = append(s.want, "")
			}
			s.want = append(s.want, text)
			s.end = i + 1
		}
	}
	return all
}

// withOutputs returns the page with other outputs: those of the steps in got.
func withOutputs(lines []string, all []step, got map[int][]string) []string {
	lines = slices.Clone(lines)
	for i, s := range slices.Backward(all) {
		if output, is := got[i]; is {
			var shown []string
			for _, l := range output {
				shown = append(shown, strings.TrimRight(indent+l, " "))
			}
			lines = slices.Replace(lines, s.first, s.end, shown...)
		}
	}
	return lines
}

// mask replaces a text that differs from run to run.
type mask struct {
	pattern *regexp.Regexp
	instead string
}

// masks are those of all pages, in the order in which they are applied.
func masks() []mask {
	var all []mask
	for _, m := range [][2]string{
		{`mesh-agent \S+ on \S+,`, "mesh-agent VERSION on HOST,"},
		{`\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d+)?Z)?`, "TIME"},
		{`\b(\d+d)?(\d+h)?(\d+m)?\d+(\.\d+)?(ms|µs|s)\b|\b\d+(d|h|m)\b`, "AGE"},
		{`for \d+ days`, "for DAYS"},
		{`(127\.0\.0\.1|localhost):\d+`, "$1:PORT"},
		{`-p \d+`, "-p PORT"},
		{`/tmp/docs\d+/agent\.sock|/var/run/mesh-agent/mesh-agent\.sock`, "SOCKET"},
		{`mesh-sim-\d+|tmp\.\w+`, "TEMPORARY"},
		{`\b[0-9a-f]{16}\b`, "ID"},
		{`revision \d+`, "revision N"},
		{`Identity +\d+`, "Identity N"},
		{`\d+ (addresses|identities|keys)`, "N $1"},
		{`\d+ failures?, the last`, "N failures, the last"},
		{`\d+ requests?, \d+ refused`, "REQUESTS"},
		{`lease \d+ of keys, \d+ of locks`, "LEASES"},
		// A cluster's row in status: the number of its entries changes with the churn.
		{`(?m)^(\S+ +(?:ready|degraded|removing) +\d+) +\d+`, "$1 N"},
	} {
		all = append(all, mask{regexp.MustCompile(m[0]), m[1]})
	}
	return all
}

// masked is a text without the parts that differ from run to run: its words, with one space between them. The order of
// a DNS server's answers differs each time.
func masked(command, text string) string {
	for _, m := range masks() {
		text = m.pattern.ReplaceAllString(text, m.instead)
	}
	if strings.HasPrefix(command, "dig ") {
		lines := strings.Split(strings.TrimSpace(text), "\n")
		slices.Sort(lines)
		text = strings.Join(lines, "\n")
	}
	return strings.Join(strings.Fields(text), " ")
}

// same compares an output with the output in a page.
func same(command string, want []string, got string) bool {
	if len(want) == 1 && want[0] == anything {
		return false // -update will write it
	}
	pattern := regexp.QuoteMeta(masked(command, strings.Join(want, "\n")))
	pattern = strings.ReplaceAll(pattern, regexp.QuoteMeta(anything), `.*`)
	return regexp.MustCompile(`^` + pattern + `$`).MatchString(masked(command, got))
}

func TestSteps(t *testing.T) {
	t.Parallel()
	page := "# A\n\ntext\n\n    $ one\n    1\n\n    1b\n    $ two \\\n        more\n\ntext\n\n    not a command\n\n## B\n\n    $ cat <<EOF\n    x\n    EOF\n    x\n"
	lines := strings.Split(page, "\n")
	all := steps(lines)
	want := []step{
		{section: "A", command: "one", want: []string{"1", "", "1b"}, first: 5, end: 8},
		{section: "A", command: "two \\\n    more", first: 10, end: 10},
		{section: "B", command: "cat <<EOF\nx\nEOF", want: []string{"x"}, first: 20, end: 21},
	}
	if len(all) != len(want) {
		t.Fatalf("got %+v", all)
	}
	for i, s := range all {
		if s.section != want[i].section || s.command != want[i].command || !slices.Equal(s.want, want[i].want) || s.first != want[i].first || s.end != want[i].end {
			t.Errorf("got %+v, want %+v", s, want[i])
		}
	}
	if after := withOutputs(lines, all, map[int][]string{0: {"2"}}); after[5] != indent+"2" || after[6] != indent+"$ two \\" {
		t.Errorf("got %q", after[4:8])
	}
}

func TestSame(t *testing.T) {
	t.Parallel()
	for got, is := range map[string]bool{
		"up 3.5s at 127.0.0.1:99 (2)": true,
		"up 1m7s at 127.0.0.1:7  (2)": true,
		"up 1m7s at 127.0.0.1:7  (3)": false,
		"up 1m7s at 127.0.0.2:7  (2)": false,
	} {
		if same("", []string{"up 2s at 127.0.0.1:1234 (2)"}, got) != is {
			t.Errorf("%q: %v", got, !is)
		}
	}
	if !same("dig x", []string{"a 1", "b 2"}, "b 2\na 1\n") || same("cat x", []string{"a 1", "b 2"}, "b 2\na 1\n") || !same("", []string{"a", "...", "z"}, "a b z") {
		t.Error("the order of lines, or the rest of an output")
	}
}

func readPage(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n")
}
